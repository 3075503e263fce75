#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what people read: Markdown files and, with --sources, the comments and messages of C and C++ files.
Prints FILE:LINE: RULE: TEXT for every finding and ends with status 1 if there are findings.

Rules:
  sentence   a sentence has more than 32 words; a code span counts as one word
  average    the sentences of a document have more than 22 words on average
  wording    a construction of the list BANNED below, which gives the reason and an example of each
  heading    a document has one heading of level 1, which comes first, and headings skip no level
  link       the target of a relative link, or its anchor, does not exist
  path       a file of this repository that the text names does not exist
  outside    the text refers to a file or a numbering that only its authors have

Usage: tests/prose.py [--sources] [--root FOLDER] [FILES]
       tests/prose.py --self-test
Without FILES it reads README.md, CHANGELOG.md, CONTRIBUTING.md and the Markdown files of docs."""
import argparse
import pathlib
import re
import sys
import tempfile
import typing

MOST_WORDS = 32
MOST_AVERAGE = 22
FEWEST_SENTENCES = 8  # a shorter document has no average worth a rule

PREPOSITION = "about|across|after|against|among|as|at|before|behind|beside|between|beyond|by|for|from|in|into|like|of|on|onto|over|per|than|through|to|toward|towards|under|upon|with|without"


class Banned(typing.NamedTuple):
    name: str
    pattern: re.Pattern
    where: str  # m: Markdown, c: comments, s: string literals
    reason: str
    bad: str
    good: str


def banned(name, pattern, where, reason, bad, good):
    return Banned(name, re.compile(pattern, re.I), where, reason, bad, good)


BANNED = [
    banned("opens with what", r"^(what|whatever|whatsoever)\b(?!.*\?)", "m",
           "Name the thing: a reader meets the verb before knowing the subject.",
           "What few ranks have goes first.", "Scarce segments go first."),
    banned("opens with who", r"^(who|whom|whoever)\b(?!.*\?)", "mcs",
           "A rank, a process, a reader: name the one that acts.",
           "Who comes last sends to its neighbour.", "The last rank sends to its neighbour."),
    banned("preposition and what", rf"\b({PREPOSITION}) (what|whatever)\b(?! (degree|extent|factor|kind|order|size|sort))", "m",
           "Use a noun: the result, the cost, the message.",
           "The schedule is made from what the ranks said.", "The schedule is made from the answers of the ranks."),
    banned("preposition and who", rf"\b({PREPOSITION}) (who|whoever)\b", "mcs",
           "Name the rank, the process or the reader.",
           "It sends the segment to who is busy.", "It sends the segment to a busy rank."),
    banned("whoever", r"\bwho(m?so)?ever\b", "mcs",
           "Say which rank, process or reader.",
           "The segment goes out, whoever asks.", "The segment goes to any rank that asks."),
    banned("is for whom", r"\b(is|are) for whom\b", "mcs",
           "Name the ranks that the statement applies to.",
           "In place is for whom it is for.", "MPI_IN_PLACE applies to the root only."),
    banned("all what", r"\b(all|everything|anything|nothing|something) what\b", "mcs",
           "After a pronoun English takes 'that'.",
           "It prints all what it knows.", "It prints all that it knows."),
    banned("there is none", r"\bthere (is|are|was|were) none\b", "mcs",
           "Say which thing is missing and what follows.",
           "The default serves where there is none.", "Without a policy the default applies."),
    banned("that there is", r"\b(that|what) there (is|are)\b(?=\s*([.,;:)]|$))", "mcs",
           "Delete it, or say where the things are.",
           "It tries all ways that there are.", "It tries every algorithm of the catalogue."),
    banned("is looked for", r"\b(is|are|was|were|be|been|being) looked (for|after|at)\b", "mcs",
           "Name the part that searches, and use 'search'.",
           "Plans are looked for in the cache.", "The planner searches the cache."),
    banned("history", r"\b(formerly|until recently|in (an )?earlier versions?|used to be)\b", "mc",
           "A text describes the present; git has the history.",
           "The planner used to be slower.", "The planner takes 3 ms."),
]

OUTSIDE = [
    (re.compile(r"(?<![\w/-])(DESIGN|FACTS|ALGORITHMS|INTERFACE|STYLE)(\.md\b|(?=,? section\b))"), "m c s"),
    (re.compile(r"(?<![\w/-])(see|in|of|by|from) (DESIGN|FACTS|ALGORITHMS)\b(?!_)"), "m c s"),
    (re.compile(r"\.\./shared\b"), "m c s"),
    (re.compile(r"(?<![\w.$}/~-])/work/"), "m c s"),
    (re.compile(r"\bpapers? 00\d"), "m c s"),
]

# Where these words begin a text in backticks, it is a file of the repository.
FOLDERS = "cmake|core|docs|examples|profiles|scripts|shim|tests"
PATH = re.compile(rf"(?<![\w./$}}*-])((?:{FOLDERS})/[\w./-]*[\w/])(?![\w*{{<$(]|-[A-Z])")
DOCUMENT = re.compile(r"(?<![\w./$}-])((?:docs/[\w./-]+|README|CHANGELOG|CONTRIBUTING)\.md)(#[\w-]+)?")

ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|resp|approx|Fig|Figs|Sec|Eq|No|al|pp|vol|St|Dr|[A-Z])\.)$")
SENTENCE_END = re.compile(r"[.!?][\"')\]*_]*\s+(?=[\"'(\[*_]*[A-Z0-9`\x01-])")
WORD = re.compile(r"[^\W_]|\x01")
CODE = "\x01"  # stands for a code span


class Finding(typing.NamedTuple):
    file: str
    line: int
    rule: str
    text: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.rule}: {self.text}"


class Block(typing.NamedTuple):
    """Text that belongs together; line breaks are kept, so that a place in it has a line."""
    line: int
    kind: str  # paragraph, item, cell, heading, comment, string
    text: str


def sentences(text):
    """(offset, sentence), without what only looks like the end of one."""
    start = 0
    for end in SENTENCE_END.finditer(text):
        if ABBREVIATION.search(text[start:end.start() + 1]) or re.fullmatch(r"\s*\d+\.", text[start:end.start() + 1]):
            continue
        yield start, text[start:end.end()].strip()
        start = end.end()
    if text[start:].strip():
        yield start, text[start:].strip()


def words(sentence):
    return sum(1 for word in sentence.split() if WORD.search(word))


def short(text, most=100):
    text = " ".join(text.replace(CODE, "`...`").split())
    return text if len(text) <= most else text[:most - 3] + "..."


def plain(text):
    """Without Markdown's signs. Line breaks stay where they are."""
    def kept(match, by):
        return by + "\n" * match[0].count("\n")
    text = re.sub(r"<!--.*?-->", lambda m: kept(m, ""), text, flags=re.S)
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda m: kept(m, CODE), text, flags=re.S)
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\](\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)|\[[^\[\]]*\])", lambda m: kept(m, " ".join(m[1].split())), text, flags=re.S)
    text = re.sub(r"<https?://[^>]*>|https?://\S+", CODE, text)
    text = re.sub(r"</?[a-zA-Z][^<>]*>", lambda m: kept(m, ""), text)
    return re.sub(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)", "", text)


def slug(heading, taken):
    """GitHub's anchor of a heading."""
    text = re.sub(r"!?\[([^\[\]]*)\]\([^)]*\)", r"\1", heading.strip()).replace("`", "")
    text = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    text = text.strip("\n")
    number = taken.get(text, -1) + 1
    taken[text] = number
    return f"{text}-{number}" if number else text


class Markdown:
    """A document, as blocks, headings, anchors and links."""

    def __init__(self, text):
        self.blocks, self.headings, self.anchors, self.links, self.code = [], [], set(), [], set()
        lines, at, taken = text.split("\n"), 0, {}
        gathered, first, kind, in_list = [], 0, "paragraph", False

        def flush():
            nonlocal gathered, kind
            if gathered:
                self.blocks.append(Block(first, kind, "\n".join(gathered)))
            gathered, kind = [], "paragraph"

        while at < len(lines):
            line, number = lines[at], at + 1
            fence = re.match(r"\s*(?:[-*+]\s+|>\s*)?(```+|~~~+)", line)
            heading = re.match(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$", line)
            item = re.match(r"(\s*(?:[-*+]|\d+[.)])\s+)(.*)", line)
            if fence:
                flush()
                self.code.add(number)
                at += 1
                while at < len(lines) and not re.match(rf"\s*>?\s*{re.escape(fence[1])}\s*$", lines[at]):
                    self.code.add(at + 1)
                    at += 1
                self.code.add(at + 1)
            elif not line.strip():
                flush()
            elif re.match(r"(?: {4}|\t)", line) and not gathered and not in_list:
                self.code.add(number)  # indented code
            elif heading:
                flush()
                in_list = False
                self.headings.append((number, len(heading[1]), heading[2]))
                self.anchors.add(slug(heading[2], taken))
                self.blocks.append(Block(number, "heading", heading[2]))
            elif re.match(r"\s*\|", line):
                flush()
                if not re.fullmatch(r"[\s|:-]+", line):
                    cells = re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", lambda m: m[0].replace("|", "/"), line.strip().strip("|")))
                    self.blocks += [Block(number, "cell", cell) for cell in cells if cell.strip()]
            elif re.match(r" {0,3}\[[^\]]+\]:\s+\S+", line):
                flush()
            elif item:
                flush()
                in_list, first, kind = True, number, "item"
                gathered = [item[2]]
            else:
                if not gathered:
                    first = number
                    in_list = in_list and line.startswith("  ")
                gathered.append(re.sub(r"^\s*>\s?", "", line))
            at += 1
        flush()
        self.anchors |= set(re.findall(r"<a\s+(?:name|id)=\"([^\"]+)\"", text))
        for block in self.blocks:
            without = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda m: " " * 3 + "\n" * m[0].count("\n"), block.text, flags=re.S)
            for link in re.finditer(r"\]\(\s*<?([^()\s<>]+(?:\([^()]*\))?[^()\s<>]*)>?(?:\s+\"[^\"]*\")?\s*\)", without):
                self.links.append((block.line + without[:link.start()].count("\n"), link[1]))
        for number, line in enumerate(lines, 1):
            link = re.match(r" {0,3}\[[^\]]+\]:\s+<?([^\s>]+)", line)
            if link and number not in self.code:
                self.links.append((number, link[1]))


class Checker:
    def __init__(self, root):
        self.root, self.findings, self.documents, self.report = root.resolve(), [], {}, []

    def found(self, name, line, rule, text):
        self.findings.append(Finding(str(name), line, rule, short(text)))

    def document(self, path):
        if path not in self.documents:
            self.documents[path] = Markdown(path.read_text())
        return self.documents[path]

    def wording(self, name, block, where, opening=True):
        """Banned constructions of one block, sentence by sentence."""
        for at, sentence in sentences(block.text):
            said = " ".join(re.sub(r"^[\"'(\[*_\s-]+", "", sentence).split())
            for row in BANNED:
                if where in row.where and (opening or not row.pattern.pattern.startswith("^")):
                    match = row.pattern.search(said)
                    if match:
                        self.found(name, block.line + block.text[:at].count("\n"), "wording", f"{row.name}: {said}")

    def outside(self, name, line, text):
        for pattern, _ in OUTSIDE:
            match = pattern.search(text)
            if match:
                self.found(name, line, "outside", text.strip())
                return

    def sentence_lengths(self, name, block):
        lengths = []
        for at, sentence in sentences(block.text):
            count = words(sentence)
            lengths.append(count)
            if count > MOST_WORDS:
                self.found(name, block.line + block.text[:at].count("\n"), "sentence", f"{count} words: {sentence}")
        return lengths

    def mentions(self, name, line, text, folder, pattern=DOCUMENT):
        """Documents that a text names: from the root, or from the folder it is in."""
        for match in pattern.finditer(text):
            path, anchor = match[1], match[2] if pattern is DOCUMENT else None
            target = next((t for t in (self.root / path, folder / path) if t.exists()), None)
            if not target and pattern is PATH and any(self.root.glob(path + ".*")):
                continue  # the name of a program or of a part: tests/bench/permutation is made from permutation.c
            if not target:
                self.found(name, line, "path", f"{path} does not exist")
            elif anchor and anchor[1:] not in self.document(target).anchors:
                self.found(name, line, "path", f"{path} has no heading {anchor}")

    def markdown(self, path):
        name = path.relative_to(self.root) if path.is_relative_to(self.root) else path
        text = path.read_text()
        document = self.document(path)
        lengths, references = [], False
        for block in document.blocks:
            shown = block._replace(text=plain(block.text))
            if block.kind == "heading":
                references = bool(re.match(r"(references|bibliography|papers)\b", block.text, re.I))
            # A heading or a cell is a title; so is an item that is nothing but a link, and the title of a link's target.
            opening = block.kind in ("paragraph", "item") and not re.fullmatch(r"\s*\[[^\]]*\]\([^)]*\)[.,;]?\s*", block.text)
            self.wording(name, shown, "m", opening)
            if block.kind != "heading" and not references:
                found = self.sentence_lengths(name, shown)
                lengths += found if block.kind != "cell" else []
            for span in re.finditer(r"`([^`]+)`", block.text):
                at = block.line + block.text[:span.start()].count("\n")
                if "/" in span[1] and not re.search(r"[\s*{<$]|\b[A-Z]{3,}\b", span[1]):
                    self.mentions(name, at, span[1], path.parent, PATH)
        if len(lengths) >= FEWEST_SENTENCES and sum(lengths) > MOST_AVERAGE * len(lengths):
            self.found(name, 1, "average", f"{sum(lengths) / len(lengths):.1f} words in a sentence, over {len(lengths)} sentences")
        self.report.append((name, len(lengths), sum(lengths)))
        for number, line in enumerate(text.split("\n"), 1):
            self.outside(name, number, line)
        level = 0
        for number, depth, title in document.headings:
            if not level and depth != 1:
                self.found(name, number, "heading", f"the first heading has level {depth}, not 1: {title}")
            elif level and depth == 1:
                self.found(name, number, "heading", f"a second heading of level 1: {title}")
            elif depth > level + 1:
                self.found(name, number, "heading", f"level {depth} under level {level}: {title}")
            level = depth
        if not document.headings:
            self.found(name, 1, "heading", "no heading")
        for number, target in document.links:
            self.link(name, path, number, target)

    def link(self, name, path, number, target):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            return
        file, _, anchor = target.partition("#")
        goal = (path.parent / file).resolve() if file else path
        if not goal.is_relative_to(self.root):
            self.found(name, number, "outside", f"a link out of the repository: {target}")
        elif not goal.exists():
            self.found(name, number, "link", f"no such file: {target}")
        elif anchor and goal.suffix == ".md" and anchor not in self.document(goal).anchors:
            self.found(name, number, "link", f"no such heading: {target}")

    def source(self, path):
        name = path.relative_to(self.root)
        for block in source_blocks(path.read_text()):
            shown = block._replace(text=re.sub(r"`[^`\n]*`", CODE, block.text))
            self.wording(name, shown, block.kind[0])
            for at, line in enumerate(block.text.split("\n")):
                self.outside(name, block.line + at, line)
                self.mentions(name, block.line + at, line, path.parent)
            if block.kind == "comment":
                self.sentence_lengths(name, shown)


TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'""", re.S)


def source_blocks(text):
    """Comments, joined where their lines follow each other, and messages: string literals of four words and more."""
    comments, strings = [], []
    for token in TOKEN.finditer(text):
        line = text.count("\n", 0, token.start()) + 1
        start = text.rfind("\n", 0, token.start()) + 1
        alone, column = not text[start:token.start()].strip(), token.start() - start
        if token[0].startswith("//"):
            said = re.sub(r"^//[/!]?<? ?", "", token[0])
            before = comments[-1] if comments else None
            new = re.match(r"\s|[-*|] |\d+[.)] |SPDX|@|\\\w", said) or not said.strip()
            if before and alone and before[1] and before[2] == column and before[3] == line - 1 and not new and not before[5]:
                before[4] += "\n" + said.strip()
                before[3] = line
            else:
                comments.append([line, alone, column, line, said.strip(), bool(re.match(r"SPDX|\s", said)) or not said.strip()])
        elif token[0].startswith("/*"):
            said = "\n".join(re.sub(r"^\s*\*? ?", "", part) for part in token[0][2:-2].split("\n"))
            comments.append([line, alone, column, -1, said, False])
        elif token[0].startswith('"'):
            strings.append((line, token.end(), token[0][1:-1]))
    joined = []
    for line, end, said in strings:
        if joined and not text[joined[-1][1]:end - len(said) - 2].strip():
            joined[-1] = (joined[-1][0], end, joined[-1][2] + said)
        else:
            joined.append((line, end, said))
    found = [Block(line, "comment", said) for line, _, _, _, said, skip in comments if said.strip() and not skip]
    found += [Block(line, "string", said.replace("\\n", " ").replace('\\"', '"')) for line, _, said in joined if len(said.split()) >= 4]
    return found


def markdown_files(root):
    named = [root / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [path for path in named if path.exists()] + sorted((root / "docs").rglob("*.md"))


def source_files(root):
    return [path for part in ("core", "profiles", "shim", "examples", "tests") for path in sorted((root / part).rglob("*"))
            if path.suffix in (".c", ".cpp", ".h", ".hpp", ".def") and path.is_file()]


def self_test():
    """Faults that must be found and texts in which nothing may be found."""
    long_sentence = "The planner " + " ".join(f"word{i}" for i in range(MOST_WORDS - 2))
    twenty_five = "A sentence " + " ".join(f"word{i}" for i in range(23)) + ". "
    faults, tried = [], 0

    def expect(rules, found, what):
        nonlocal tried
        tried += 1
        got = sorted({finding.rule for finding in found})
        if got != sorted(rules):
            faults.append(f"{what!r}: expected {sorted(rules)}, found {[str(f) for f in found]}")

    with tempfile.TemporaryDirectory(prefix="latecomer-prose-") as name:
        root = pathlib.Path(name)
        (root / "docs").mkdir()
        (root / "docs/there.md").write_text("# There it is\n\n## A `key` and (more)\n\n## Twice\n\n## Twice\n")

        def check(text):
            file = root / "docs/case.md"
            file.write_text(text)
            checker = Checker(root)
            checker.markdown(file.resolve())
            return checker.findings

        def check_source(text):
            file = root / "docs/case.cpp"
            file.write_text(text)
            checker = Checker(root)
            checker.source(file.resolve())
            return checker.findings

        for row in BANNED:
            for kind, text in (("wording", row.bad), (None, row.good)):
                rules = [kind] if kind else []
                expect(rules, check(f"# Title\n\nIt is short. {text} It ends.\n"), text)
                expect(rules, check(f"# Title\n\n- An item.\n- {text}\n"), text)
                expect(rules if "c" in row.where else [], check_source(f"// It is short.\n// {text}\nint i;\n"), f"// {text}")
                expect(rules if "s" in row.where else [], check_source(f'say("{text}");\n'), f'"{text}"')
        for rules, text in [
            # sentences
            (["sentence"], f"# Title\n\n{long_sentence} more.\n"),
            ([], f"# Title\n\n{long_sentence}.\n"),
            (["sentence"], f"# Title\n\nShort one.\n{long_sentence} more, e.g. this.\n"),
            ([], f"# Title\n\n{long_sentence}. {long_sentence}.\n"),
            ([], f"# Title\n\n{long_sentence} `a code span of many words is one` \n".replace("word5 word6 ", "")),
            ([], f"# Title\n\n```\n{long_sentence} {long_sentence}\n```\n"),
            ([], f"# Title\n\n{long_sentence}\n\n{long_sentence}\n"),
            ([], f"# Title\n\n- {long_sentence}\n- {long_sentence}\n"),
            (["sentence"], f"# Title\n\n- {long_sentence}\n  and more\n"),
            (["sentence"], f"# Title\n\n| a | b |\n|---|---|\n| one | {long_sentence} more |\n"),
            ([], f"# Title\n\n| a | b |\n|---|---|\n| {long_sentence} | {long_sentence} |\n"),
            ([], f"# Title\n\n## References\n\n- {long_sentence} and more and more.\n"),
            # averages
            (["average"], "# Title\n\n" + twenty_five * 8),
            ([], "# Title\n\n" + twenty_five * 4 + "A short one of six words. " * 4),
            ([], "# Title\n\n" + twenty_five * 2),
            # wording that stays
            ([], "# What it costs\n\nIt costs 3 us.\n"),
            ([], "# Title\n\nWhat does it cost? It costs 3 us.\n"),
            ([], "# Title\n\nThe report shows what changed and says who waits for whom.\n"),
            ([], "# Title\n\nThe option `to what` exists.\n"),
            (["wording"], "# Title\n\nIt is made\nof what the\nranks say.\n"),
            # headings
            (["heading"], "## Title\n\nText.\n"),
            (["heading"], "# Title\n\n# Another\n"),
            (["heading"], "# Title\n\n### Deep\n"),
            (["heading"], "Text alone.\n"),
            ([], "# Title\n\n## One\n\n### Two\n\n## Three\n"),
            ([], "# Title\n\n```\n# a comment of a shell\n```\n"),
            # links
            ([], "# Title\n\n[there](there.md), [key](there.md#a-key-and-more), [second](there.md#twice-1), [here](#title).\n"),
            (["link"], "# Title\n\n[there](nowhere.md)\n"),
            (["link"], "# Title\n\n[there](there.md#nothing)\n"),
            (["link"], "# Title\n\n[here](#nothing)\n"),
            (["link"], "# Title\n\nAs [said].\n\n[said]: nowhere.md\n"),
            (["outside"], "# Title\n\n[up](../../else.md)\n"),
            ([], "# Title\n\n[web](https://www.mpi-forum.org/nothing.md) and `[code](nowhere.md)`.\n"),
            # paths
            (["path"], "# Title\n\nSee `docs/nowhere.md`.\n"),
            ([], "# Title\n\nSee `docs/there`, made of `docs/there.md`.\n"),
            ([], "# Title\n\nSee `docs/there.md`, `docs/NAME.md`, `core/<name>.cpp` and `build/docs/x`.\n"),
            # outside
            (["outside"], "# Title\n\nAs FACTS.md says.\n"),
            (["outside"], "# Title\n\nSee DESIGN, section 3.\n"),
            (["outside"], "# Title\n\nAs paper 003 says.\n"),
            (["outside"], "# Title\n\n```\ncat ../shared/x\n```\n"),
            (["outside"], "# Title\n\n```\ncd /work/main\n```\n"),
            ([], "# Title\n\nProficz 2018 gives the algorithm. See `$HOME/work/` and `LATECOMER_ALGORITHMS`.\n"),
        ]:
            expect(rules, check(text), text)
        for rules, text in [
            (["sentence"], f"// {long_sentence}\n// and more.\n"),
            ([], f"// {long_sentence}\n\n// {long_sentence}\n"),
            ([], f"int a;  // {long_sentence}\nint b;  // {long_sentence}\n"),
            (["outside"], "/* as in paper 004 */\n"),
            (["path"], "// See docs/nowhere.md.\n"),
            (["path"], "// See docs/there.md#nothing.\n"),
            ([], "// See docs/there.md#twice-1.\n"),
            ([], "const char* url = \"//of who\"; char c = '\"';  // short\n"),
            (["wording"], 'say("the segment goes " "to who asks for it");\n'),
        ]:
            expect(rules, check_source(text), text)
    for fault in faults:
        print("prose: self-test:", fault)
    print(f"prose: self-test: {tried} texts, {len(faults)} wrong")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--sources", action="store_true", help="comments and messages of C and C++ files, too")
    parser.add_argument("--averages", action="store_true", help="prints the mean words per sentence of each document")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    o = parser.parse_args()
    if o.self_test:
        return self_test()
    checker = Checker(o.root)
    files = o.files or markdown_files(checker.root) + (source_files(checker.root) if o.sources else [])
    for path in map(pathlib.Path.resolve, files):
        checker.markdown(path) if path.suffix == ".md" else checker.source(path)
    for finding in checker.findings:
        print(finding)
    if o.averages:
        for name, count, total in checker.report:
            print(f"{name}: {count} sentences, {total / max(1, count):.1f} words on average")
    rules = {}
    for finding in checker.findings:
        rules[finding.rule] = rules.get(finding.rule, 0) + 1
    print(f"prose: {len(files)} files, {len(checker.findings)} findings" + "".join(f", {rule} {n}" for rule, n in sorted(rules.items())))
    return 1 if checker.findings else 0


if __name__ == "__main__":
    sys.exit(main())
