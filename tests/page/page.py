# SPDX-License-Identifier: BSD-3-Clause
"""Loads pages of `latecomer report --html` in headless Chromium: 4, 64 and 10,000 ranks, with and without the record of
arrivals, with hostile and long names. Checks their contents, tables, keyboard, widths, contrast and network access.
data.py checks what needs no browser. Usage: page.py LATECOMER ROOT. Ends with status 77 where the machine has no Chromium."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from browser import Browser, missing
from profiles import HOSTILE, LONG, write_profile

command, root = sys.argv[1], pathlib.Path(sys.argv[2])
if missing():
    print(f"skipped: this machine lacks {missing()}; Debian's packages are chromium, chromium-driver and python3-selenium")
    sys.exit(77)
failures = []


def check(condition, what):
    print("ok    " if condition else "FAILED", what, flush=True)
    if not condition:
        failures.append(what)


# Colours are composed over the backgrounds of the ancestors. Elements that are not rendered do not count.
CONTRAST = """
const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
const under = element => {
  for (let at = element; at; at = at.parentElement) { const c = parse(getComputedStyle(at).backgroundColor); if (c[3] === 1) return c; }
  return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0, 1] : [255, 255, 255, 1];
};
const out = [];
let seen = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, element = node.parentElement;
  if (!node.textContent.trim() || !element.checkVisibility() || ["SCRIPT", "STYLE", "OPTION", "TITLE"].includes(element.tagName) || element.tagName === "title") continue;
  ++seen;
  const style = getComputedStyle(element), ink = parse(element.closest("svg") ? style.fill : style.color), paper = under(element);
  const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) out.push(`${element.tagName}.${element.className.baseVal ?? element.className} ${ratio.toFixed(2)}: ${node.textContent.trim().slice(0, 40)}`);
}
return [seen, out];
"""
# Every control has a name; every canvas and chart has a text; ids are unique; references resolve.
NAMES = """
const problems = [], ids = new Set();
for (const e of document.querySelectorAll("[id]")) ids.has(e.id) ? problems.push("id twice: " + e.id) : ids.add(e.id);
for (const e of document.querySelectorAll("[aria-controls],[aria-describedby],label[for]"))
  for (const key of ["aria-controls", "aria-describedby", "for"]) if (e.hasAttribute(key) && !ids.has(e.getAttribute(key))) problems.push(key + " names nothing: " + e.getAttribute(key));
for (const e of document.querySelectorAll("button, select, input"))
  if (!(e.textContent.trim() || e.labels?.[0]?.textContent.trim())) problems.push("no name: " + e.outerHTML.slice(0, 80));
for (const e of document.querySelectorAll("canvas, svg:not([aria-hidden])"))
  if (e.getAttribute("role") !== "img" || (e.getAttribute("aria-label") || "").length < 20) problems.push("no text: " + e.outerHTML.slice(0, 80));
for (const e of document.querySelectorAll("table")) if (!e.caption || !e.caption.textContent.trim()) problems.push("a table without a caption");
for (const e of document.querySelectorAll("thead th")) if (e.scope !== "col") problems.push("a heading without a scope");
for (const e of document.querySelectorAll("[tabindex='0']:not(pre)")) if (!e.getAttribute("aria-label")) problems.push("focus without a name");
return problems;
"""
WIDE = """return [document.documentElement.scrollWidth, document.documentElement.clientWidth,
  [...document.querySelectorAll("main *")].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 80))]"""
PIXELS = """const c = document.querySelector(arguments[0] + " canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, colours = new Set();
let solid = 0;
for (let i = 0; i < d.length; i += 4) { solid += d[i + 3] === 255; colours.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); }
return [c.width, c.height, solid, colours.size];"""


def first_cells(browser, part, column):
    return browser.run("return [...document.querySelectorAll(arguments[0] + ' .big > tbody > tr:not(.detail)')].map(r => r.children[arguments[1]].textContent)", part, column)


def status(browser, part):
    return browser.run("return document.querySelector(arguments[0] + ' [role=status]').textContent", part)


def click_heading(browser, part, name):
    return browser.run("""const th = [...document.querySelectorAll(arguments[0] + ' .big > thead th')].find(t => t.textContent === arguments[1]);
      th.querySelector('button').click(); return th.getAttribute('aria-sort')""", part, name)


def search(browser, part, words):
    browser.run("const i = document.querySelector(arguments[0] + ' input[type=search]'); i.value = arguments[1]; i.dispatchEvent(new Event('input'))", part, words)


# Charts that are wider than their place in the details of a site.
WIDE_CHARTS = """return [...document.querySelectorAll('.charts .chart')].filter(c => c.firstElementChild && c.clientWidth > 0)
  .map(c => [c.firstElementChild.getBoundingClientRect().width, c.getBoundingClientRect().width]).filter(([chart, place]) => chart > place + 1)"""


def look(browser, path, what, ranks):
    """Checks that hold for every page."""
    for width in (1400, 600, 1200):  # as it is first drawn, without a change of the width
        messages, addresses = browser.open(path, width)
        charts = browser.run("return document.querySelectorAll('.charts .chart svg').length")
        check(charts >= 3 and browser.run(WIDE_CHARTS) == [], f"{what}: {charts} charts have room at {width} pixels: {browser.run(WIDE_CHARTS)}")
    messages, addresses = browser.open(path)
    check(browser.run("return document.documentElement.dataset.ready") == "yes" and messages == [], f"{what}: no message in the console: {messages}")
    check(addresses == [path.resolve().as_uri()], f"{what}: the page asks for nothing else: {addresses}")
    text = browser.run("return document.body.innerText")
    check(text.split("\n", 3)[0].startswith("Skip") and text.index("omputing or asleep") < text.index("Command") < text.index("Ranks by sites\n"), f"{what}: the verdict, then the job")
    check(f"{ranks} on" in text, f"{what}: the head of the job")
    check(browser.run("return [document.querySelectorAll('#injected').length, document.title.includes('simulate')]") == [0, True], f"{what}: a name is no markup")
    check(browser.run(NAMES) == [], f"{what}: names, captions and texts: {browser.run(NAMES)[:5]}")
    check(browser.run("return ['header', 'nav[aria-label]', 'main', 'h1'].map(s => document.querySelectorAll(s).length)") == [1, 1, 1, 1], f"{what}: landmarks")
    for scheme in ("light", "dark"):
        for width in (600, 1200, 2000):
            browser.shape(width, 900, scheme)
            scroll, client, parts = browser.run(WIDE)
            check(scroll <= client == width and parts == [], f"{what}: no overflow at {width} pixels, {scheme}: {scroll} {parts}")
        browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
        seen, low = browser.run(CONTRAST)
        check(seen > 100 and low == [], f"{what}: contrast of {seen} texts is at least 4.5, {scheme}: {low[:5]}")
    messages, addresses = browser.said()
    check(messages == [] and addresses == [], f"{what}: still no message and no request: {messages} {addresses}")
    browser.open(path)


def tables(browser, sites, ranks, hosts):
    check(status(browser, "#sites") == f"1 to {min(25, sites):,} of {sites:,} sites", f"the number of sites: {status(browser, '#sites')}")
    check(status(browser, "#hosts").endswith(f"of {hosts} hosts") and f"of {ranks:,} " in status(browser, "#ranks"), f"the numbers of ranks and hosts: {status(browser, '#ranks')}")
    state = click_heading(browser, "#sites", "called from")
    names = first_cells(browser, "#sites", 0)
    order = browser.run("return arguments[0].slice().sort((a, b) => a.localeCompare(b))", names)
    check(state == "ascending" and names == order, f"sorted by name: {names[:3]}")
    check(click_heading(browser, "#sites", "called from") == "descending" and first_cells(browser, "#sites", 0)[0] >= names[0], "and downwards")
    check(click_heading(browser, "#sites", "wait, sum") == "descending" and first_cells(browser, "#sites", 0)[0].startswith("cg_solve ("), "sorted by waiting")
    check(browser.run("return document.querySelectorAll('#sites [aria-sort=none]').length") == 9, "one column says that it is sorted")
    search(browser, "#sites", "norms.f90 EXCHANGE")
    found = first_cells(browser, "#sites", 0)
    check(0 < len(found) <= sites and all("exchange_norms" in f for f in found), f"a search: {found[:3]}")
    search(browser, "#sites", "nowhere at all")
    check(status(browser, "#sites") == "no sites" and first_cells(browser, "#sites", 0) == [], "a search that finds nothing")
    search(browser, "#sites", "")


AXIS = """return [...document.querySelectorAll(arguments[0] + ' .tick text')].filter(t => /^[\\d,]+$/.test(t.textContent)).map(t => Number(t.textContent.replace(',', '')))"""
# Labels of an axis that touch each other, and those that leave their plot.
LABELS = """const out = [];
for (const svg of document.querySelectorAll('svg')) {
  if (!svg.checkVisibility()) continue;
  const whole = svg.getBoundingClientRect();
  for (const axis of svg.querySelectorAll('g[text-anchor]')) {
    const boxes = [...axis.querySelectorAll('.tick text')].filter(t => t.textContent).map(t => t.getBoundingClientRect()).sort((a, b) => a.left - b.left || a.top - b.top);
    boxes.forEach((a, i) => { for (const b of boxes.slice(i + 1)) if (a.right > b.left + 0.5 && b.right > a.left + 0.5 && a.bottom > b.top + 3 && b.bottom > a.top + 3) out.push('overlap in ' + svg.closest('.part').id); });
  }
  for (const t of svg.querySelectorAll('text')) { const b = t.getBoundingClientRect(); if (b.left < whole.left - 1 || b.right > whole.right + 1) out.push('clipped in ' + svg.closest('.part').id + ': ' + t.textContent); }
}
return [...new Set(out)]"""


def new_parts(browser, ranks, per_bar, record, what):
    """The stacked bars, the Gantt chart, communicators and callers."""
    from selenium.webdriver.common.keys import Keys
    first = browser.run("return document.querySelector('main > details').id")
    areas, key, part = browser.run("const d = document.querySelector('#time'); return [d.querySelectorAll('path.part').length, [...d.querySelectorAll('.key li')].map(l => l.textContent), d.querySelector('figcaption').textContent]")
    check(first == "time" and areas == 11 and key == ["computes", "kernel", "no core", "blocked", "messages", "files", "other MPI", "ends", "waits", "after last", "rest"], f"{what}: the first picture has eleven parts: {key}")
    heading = browser.run("return [...document.querySelectorAll('#ranks .big > thead th')].map(t => t.textContent)")
    check([k for k in key if k in heading] == key[:9], f"{what}: the table of ranks has the same titles: {heading}")
    check(("One bar per rank." in part) == (per_bar == 1) and (f"{per_bar} neighbouring ranks" in part or per_bar == 1), f"{what}: {part}")
    high = browser.run("""const all = [...document.querySelectorAll('#time path.part')].map(p => p.getBBox()), top = Math.min(...all.filter(b => b.height).map(b => b.y)), low = Math.max(...all.map(b => b.y + b.height));
      return [top, low, document.querySelector('#time svg[role=img]').getAttribute('aria-label')]""")
    check(abs(high[0] - 34) < 1 and abs(high[1] - 306) < 1 and f"rank" in high[2], f"{what}: the bars fill the axis: {high}")
    browser.run("document.querySelector('#time .plot').focus()")
    browser.press(Keys.END)
    said = browser.run("return document.querySelector('#time output').textContent")
    shares = [float(n) for n in re.findall(r" ([\d.]+)%", said)]
    check(len(shares) == 11 and abs(sum(shares) - 100) <= 3 and f"{ranks - 1}" in said.replace(",", ""), f"{what}: the last bar: {said}")
    browser.press(Keys.ENTER)
    shown = said.split("of which ")[-1].split(" on ")[0] if per_bar > 1 else str(ranks - 1)
    check(browser.run("return document.activeElement.textContent") == shown and browser.run("return document.activeElement.getAttribute('aria-expanded')") == "true", f"{what}: Enter opens the row of the rank")
    if per_bar > 1:
        was = browser.run("return document.querySelector('#time path.part').getAttribute('d')")
        browser.run("document.querySelector('#time input[value=mean]').click()")
        check(browser.run("return document.querySelector('#time path.part').getAttribute('d')") != was and "their mean" in browser.run("return document.querySelector('#time figcaption').textContent"), f"{what}: the mean of the ranks of a bar")
    gantt = browser.run("return ['rect.cursor', 'path.waits', 'path.after', 'select option'].map(s => document.querySelectorAll('#calls ' + s).length)")
    check(gantt == ([2, 1, 1, 3] if record else [0, 0, 0, 0]), f"{what}: recorded calls: {gantt}")
    if record:
        browser.run("document.querySelector('#calls .plot').focus()")
        for key in (Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_RIGHT):
            browser.press(key)
        said = browser.run("return document.querySelector('#calls output').textContent")
        check(re.match(r"rank \d+, .*: arrives at .*, waits .*, after last ", said), f"{what}: arrow keys in the recorded calls: {said}")
        browser.run("const s = document.querySelector('#calls select'); s.value = '1'; s.dispatchEvent(new Event('change'))")
        check("Point at" in browser.run("return document.querySelector('#calls output').textContent"), f"{what}: another stretch")
        browser.run("document.querySelector('#calls details').open = true")
        browser.driver.execute_async_script("setTimeout(arguments[0], 50)")
        check(browser.run("return document.querySelectorAll('#calls details tbody tr').length") > 1, f"{what}: the calls of a stretch as a table")
    groups = browser.run("return [...document.querySelectorAll('#communicators .big > tbody > tr:not(.detail)')].map(r => r.children[0].textContent + ' ' + r.children[1].textContent)")
    check(groups == [f"0-{ranks - 1} {ranks:,}", f"0-{ranks // 2 - 1} {ranks // 2:,}", f"{ranks // 2}-{ranks - 1} {ranks // 2:,}", "(all further communicators) -"], f"{what}: communicators: {groups}")
    callers = browser.run("return [...[...document.querySelectorAll('#sites .detail table')].find(t => t.caption.textContent.startsWith('Callers')).tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent).join(' '))")
    check(callers == ["residual (time.cpp:10) 75% 90%", "implicit_step (time.cpp:20) 50% 60%", "explicit_step (time.cpp:20) 25% 30%", "assemble (time.cpp:10) 25% 10%"], f"{what}: callers of the first site: {callers}")


def labels(browser, path, what):
    """Labels of axes at three widths, with all details open."""
    for width in (600, 1200, 1400):
        browser.open(path, width)
        browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
        browser.driver.execute_async_script("setTimeout(arguments[0], 100)")
        check(browser.run(LABELS) == [], f"{what}: labels at {width} pixels: {browser.run(LABELS)[:4]}")


def keyboard(browser):
    from selenium.webdriver.common.keys import Keys
    button = "document.querySelectorAll('#sites .open')[1]"
    browser.run(f"{button}.focus()")
    was = browser.run(f"return {button}.getAttribute('aria-expanded')")
    browser.press(Keys.ENTER)
    shown = browser.run(f"const d = document.getElementById({button}.getAttribute('aria-controls')); return [{button}.getAttribute('aria-expanded'), d.hidden, d.querySelectorAll('svg[role=img]').length, d.textContent]")
    check(was == "false" and shown[:3] == ["true", False, 4] and "First to last arrival" in shown[3] and "time, logarithmic" in shown[3], f"Enter opens a site with four plots: {shown[:3]}")
    browser.press(Keys.SPACE)
    check(browser.run(f"return document.getElementById({button}.getAttribute('aria-controls')).hidden"), "Space closes it")
    browser.run("document.querySelector('#sites > summary').focus()")
    browser.press(Keys.ENTER)
    check(not browser.run("return document.querySelector('#sites .big').checkVisibility()"), "Enter on a heading collapses a part")
    browser.press(Keys.ENTER)
    check(browser.run("return document.querySelector('#sites .big').checkVisibility()"), "and opens it")
    browser.run("document.querySelector('#map .plot').focus()")
    browser.press(Keys.ARROW_RIGHT)
    browser.press(Keys.ARROW_RIGHT)
    browser.press(Keys.ARROW_DOWN)
    said = browser.run("return document.querySelector('#map output').textContent")
    check(said.startswith("rank 1, site allreduce, dot_product (vector.cpp:101): ") and "mean offset" in said, f"arrow keys in the heat map: {said}")
    browser.press(Keys.ENTER)
    check(browser.run("return document.activeElement.getAttribute('aria-expanded') + document.activeElement.textContent").startswith("truedot_product"), "Enter goes to the site of the cell")
    browser.run("document.querySelector('#map details').open = true")
    browser.driver.execute_async_script("setTimeout(arguments[0], 50)")
    cells = browser.run("return [...document.querySelectorAll('#map details tbody tr')].map(r => r.textContent)")
    check(len(cells) > 0 and cells[0].startswith("allreduce, cg_solve (solver.cpp:100)"), f"the table of the largest values: {cells[:1]}")
    reached = browser.run("""const all = [...document.querySelectorAll('a, button, input, select, summary, [tabindex]')].filter(e => e.checkVisibility() && !e.disabled);
      return all.filter(e => e.tabIndex < 0).length""")
    check(reached == 0, "every control is in the order of the tabulator key")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)

    def page(name, *arguments, **options):
        profile, out = folder / f"{name}.json", folder / f"{name}.html"
        write_profile(profile, *arguments, **options)
        done = subprocess.run([command, "report", "--html", out, profile], capture_output=True, text=True, timeout=1200)
        check(done.returncode == 0 and done.stdout == f"{out}\n", f"{name}: a page of {out.stat().st_size if out.exists() else 0:,} bytes: {done.stderr[-300:]}")
        return out

    with Browser(folder / "browser") as browser:
        small = page("small", 4, 6, record=400)
        html = small.read_text()
        check((root / "profiles/render/page/page.js").read_text() in html and (root / "profiles/render/page/page.css").read_text() in html, "the page holds its files unchanged")
        check("Redistribution and use in source and binary forms" in html and "Mike Bostock" in html, "the page holds the licences")
        look(browser, small, "4 ranks", 4)
        for part in ("#time", "#map", "#sites .charts > div:last-child"):
            check(browser.run(AXIS, part)[:4] == [0, 1, 2, 3], f"4 ranks: the axis of {part} has a label per rank: {browser.run(AXIS, part)}")
        check(browser.run("return [...document.querySelectorAll('#times g[text-anchor=end] text')].map(t => t.textContent)") == ["0", "1", "2", "3"], "4 ranks: so has the axis of ranks by time")
        new_parts(browser, 4, 1, True, "4 ranks")
        labels(browser, small, "4 ranks")
        tables(browser, 6, 4, 2)
        keyboard(browser)
        search(browser, "#sites", "residual")
        check(browser.run("return document.querySelector('#sites .open span').textContent").startswith("fem::assembly::Assembler"), "a long name is short in the table")
        browser.run("document.querySelector('#sites .open').click()")
        check(LONG in browser.run("return document.querySelector('#sites .detail').textContent"), "and whole in the details")
        search(browser, "#sites", HOSTILE.lower())
        check(HOSTILE in browser.run("return document.querySelector('#sites .open').textContent"), "a hostile name is text")
        search(browser, "#sites", "")
        wide, high, solid, colours = browser.run(PIXELS, "#map")
        check([wide, high] == [4, 6] and solid == 24 and colours > 5, f"ranks by sites: {wide} by {high}, {colours} colours")
        wide, high, solid, colours = browser.run(PIXELS, "#times")
        check([wide, high] == [400, 4] and solid > 800 and colours > 20, f"ranks by time: {wide} by {high}, {solid} cells")
        canvas = browser.run("return document.querySelector('#map canvas').getAttribute('aria-label')")
        check("Largest: rank 1, site allreduce, cg_solve (solver.cpp:100): 3.8" in canvas, f"the text of a heat map: {canvas}")
        before = browser.run("return document.querySelector('#map canvas').toDataURL()")
        browser.run("document.querySelector('#map input[value=waited]').click()")
        check(browser.run("return document.querySelector('#map canvas').toDataURL()") != before and "time waited" in browser.run("return document.querySelector('#map canvas').getAttribute('aria-label')"), "the switch of the heat map")
        check(browser.run("return [document.querySelectorAll('#arrivals .line').length > 4, document.querySelectorAll('#arrivals select option').length]") == [True, 5], "arrivals over time: lines, and a choice of sites")
        check("rank 1" in browser.run("return document.querySelector('#arrivals .key').textContent"), "the latest rank has a line")
        marks = browser.run("return [...document.querySelectorAll('#sites svg .tick text')].map(t => t.textContent)")
        check(any(m.endswith(("ms", "µs")) for m in marks), f"the axes of histograms have units: {marks[:6]}")

        plain = page("plain", 64, 40)
        look(browser, plain, "64 ranks without a record", 64)
        new_parts(browser, 64, 1, False, "64 ranks")
        labels(browser, plain, "64 ranks")
        tables(browser, 40, 64, 4)
        check(browser.run("return [...document.querySelectorAll('.no-record')].map(p => p.textContent.includes('latecomer run --record'))") == [True] * 3, "without a record, three parts name the command that makes one")
        browser.run("[...document.querySelectorAll('#sites .controls button')].find(b => b.textContent === 'Next').click()")
        check(status(browser, "#sites") == "26 to 40 of 40 sites" and len(first_cells(browser, "#sites", 0)) == 15, "the second page of the table")
        browser.run("location.hash = '#' + '%016x'" % 30)
        browser.driver.execute_async_script("setTimeout(arguments[0], 50)")
        check("spectral_transform_29" in browser.run("return document.activeElement.textContent"), "the address of a site opens it")

        bare = folder / "bare.html"
        start, end = html.index('<script id="plots">'), html.index("</script>", html.index('<script id="plots">'))
        bare.write_text(html[:start] + '<script id="plots">' + html[end:])
        messages, _ = browser.open(bare)
        check(messages == [] and browser.run("return document.querySelectorAll('.missing').length") == 5 and status(browser, "#sites") == "1 to 6 of 6 sites", f"a page without the plotting library has its tables: {messages}")

        large = page("large", 10000, 1000, record=60)
        os.remove(folder / "large.json")
        check(large.stat().st_size < 6_000_000, f"the page of 10,000 ranks and 1,000 sites is below 6 MB: {large.stat().st_size:,}")
        look(browser, large, "10,000 ranks", 10000)
        new_parts(browser, 10000, 21, True, "10,000 ranks")
        labels(browser, large, "10,000 ranks")
        browser.open(large)
        tables(browser, 1000, 3334, 79)
        check(len(first_cells(browser, "#ranks", 0)) == 25 and first_cells(browser, "#ranks", 0)[0] == "3333-3335", f"the late row of ranks is first: {first_cells(browser, '#ranks', 0)[:2]}")
        browser.run("const s = document.querySelector('#map select'); s.value = '1000'; s.dispatchEvent(new Event('change'))")
        wide, high, solid, colours = browser.run(PIXELS, "#map")
        check(high <= 1000 and 200 < wide <= 1000 and solid == wide * high, f"all sites in the heat map: {wide} by {high}")
        check("largest value of" in browser.run("return document.querySelector('#map figcaption').textContent") and "ranks" in browser.run("return document.querySelector('#reduced').textContent"), "the page says how it is reduced")
        check("Load balance 0.73 " in browser.run("return document.querySelector('#ranks').textContent"), "the longest time outside MPI is that of one rank, not of a row of ranks")
        nodes = browser.run("return document.querySelectorAll('*').length")
        check(nodes < 20000, f"the page has {nodes} elements")
print(f"{len(failures)} failures")
sys.exit(bool(failures))
