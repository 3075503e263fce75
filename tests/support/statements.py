# SPDX-License-Identifier: BSD-3-Clause
"""Finds C and C++ statements that a comma joins, such as `a = b, c = d;` and `return report(x), false;`.

A statement is a sequence of tokens that ends with a semicolon, directly in braces. Commas inside parentheses, brackets,
initialisers and template arguments do not count, nor do those of declarations. A sequence that ends with a body in
braces is a function or a class, so the commas of its base classes and of its initialisers do not count either."""
import re

TOKEN = re.compile(r'''
    (?P<skipped>\s+ | //[^\n]* | /\*.*?\*/ | \\\n)
  | (?P<text>(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | (?:u8|[uUL])?(?:"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+'))
  | \.?\d(?:[eEpP][+-]|'?\w|\.)* | [A-Za-z_]\w*
  | ::|->|\.\.\.|<<|[-+*/%&|^!=<>]=|&&|\|\||\+\+|-- | .''', re.X | re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?P<head>[ \t]*define[ \t]+\w+(?:\([^)]*\))?)?(?:\\.|[^\n\\])*", re.M | re.S)

OPENING, CLOSING = {"(", "[", "{"}, {")", "]", "}"}
HEADS = {"if", "for", "while", "switch", "catch"}  # a head in parentheses, then a statement
PREFIXES = {"else", "do", "try", ";", "}"}  # a statement follows
# A statement that begins with one of these words declares something.
DECLARING = set("""alignas auto bool char class const consteval constexpr constinit double enum explicit extern float
    friend inline int long mutable namespace register short signed static static_assert struct template thread_local
    typedef typename union unsigned using virtual void volatile""".split())
# A statement that begins with one of these words declares nothing, although a name may follow.
RUNNING = set("return co_return co_yield co_await throw delete new sizeof goto".split())
# After the brace that closes an initialiser or a lambda, these continue the statement.
CONTINUING = set("; , ) ( [ . ? : { + - / % < > = -> == != && || <<".split())


def is_name(token):
    return token[:1].isalpha() or token[:1] == "_"


class Reader:
    def __init__(self, text):
        found = [match for match in TOKEN.finditer(text) if not match["skipped"]]
        self.tokens = ['""' if match["text"] else match[0] for match in found] + [""] * 4
        self.offsets = [match.start() for match in found]
        self.joined = []  # offsets of the statements found
        at = 0
        while at < len(found):
            at = self.read_statement(at, len(found))

    def end_of_brackets(self, at):
        """The position behind the bracket that closes the one at `at`."""
        depth = 0
        while at < len(self.offsets):
            depth += (self.tokens[at] in OPENING) - (self.tokens[at] in CLOSING)
            at += 1
            if depth == 0:
                break
        return at

    def end_of_template(self, at):
        """The position behind the template arguments that begin at `at`, or `at` if a comparison is there."""
        here, depth = at, 0
        while here < len(self.offsets) and self.tokens[here] not in (";", "{", "}", ")", "]", "||", "="):
            depth += (self.tokens[here] == "<") - (self.tokens[here] == ">")
            here = self.end_of_brackets(here) if self.tokens[here] in ("(", "[") else here + 1
            if depth == 0:
                return here
        return at

    def read_brackets(self, at):
        """Reads the statements in the brackets at `at`, and in those inside. Returns the position behind them."""
        end = self.end_of_brackets(at)
        inside, here = [], at + 1
        while here < end - 1:
            inside.append(here)
            here = self.end_of_brackets(here) if self.tokens[here] in OPENING else here + 1
        here = at + 1
        if self.tokens[at] == "{" and any(self.tokens[one] == ";" for one in inside):
            while here < end - 1:
                here = self.read_statement(here, end - 1)
        else:
            for one in inside:
                if self.tokens[one] in OPENING:
                    self.read_brackets(one)
        return end

    def declares(self, at):
        """Whether the statement at `at` declares something: a type, then a name."""
        if self.tokens[at] in DECLARING:
            return True
        if self.tokens[at] in RUNNING:
            return False
        at += self.tokens[at] == "::"
        if not is_name(self.tokens[at]):
            return False
        while is_name(self.tokens[at]):
            at += 1
            if self.tokens[at] == "<":
                at = self.end_of_template(at)
            if self.tokens[at] != "::":
                break
            at += 1
        while self.tokens[at] in ("*", "&", "&&", "const", "volatile"):
            at += 1
        return is_name(self.tokens[at])

    def read_statement(self, at, end):
        """Reads one statement, and returns the position behind it."""
        while at < end:
            token = self.tokens[at]
            label = is_name(token) and self.tokens[at + 1] == ":"
            if token in HEADS:
                while at < end and self.tokens[at] != "(":  # if constexpr
                    at += 1
                at = self.read_brackets(at)
            elif token == "case" or label:
                while at < end and self.tokens[at] != ":":
                    at += 1
                at += 1
            elif token in PREFIXES:
                at += 1
            else:
                break
        if at < end and self.tokens[at] == "{":
            return self.read_brackets(at)
        begin, comma = at, False
        while at < end and self.tokens[at] != ";":
            token = self.tokens[at]
            if token in OPENING:
                at = self.read_brackets(at)
                if token == "{" and self.tokens[at] not in CONTINUING:
                    return at  # the body of a function or a class
                continue
            after = self.end_of_template(at) if token == "<" and is_name(self.tokens[at - 1]) else at
            comma = comma or token == ","
            at = after if after > at else at + 1
        if at < end and comma and not self.declares(begin):
            self.joined.append(self.offsets[begin])
        return at + 1


def find_joined_statements(text):
    """The numbers of the lines at which statements begin that a comma joins. Reads the bodies of macros, too."""
    def blank(some):
        return re.sub(r"[^\n]", " ", some)

    macros = [(match.end("head"), match.end()) for match in DIRECTIVE.finditer(text) if match["head"]]
    parts = [DIRECTIVE.sub(lambda match: blank(match[0]), text), *(blank(text[:start]) + text[start:end] for start, end in macros)]
    return sorted(text.count("\n", 0, offset) + 1 for part in parts for offset in Reader(part).joined)
