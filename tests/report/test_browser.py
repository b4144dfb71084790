"""The report in a real Chromium: no request, all controls work, and what a model wrote stays text."""

import itertools
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from ba_eval.records import ProblemRecord
from ba_eval.report import write_report
from ba_eval.results import load
from ba_eval.store import RunFolder
from tests.runs import make_run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")

PROBE = "window.pwned = 1"
EVIL = f"\"><img src=x onerror={PROBE}>'"
HOSTILE = [
    f"<script>{PROBE}</script>",
    f"</script><script>{PROBE}</script>",
    f"<!-- <script> --><img src=x onerror='{PROBE}'><svg onload='{PROBE}'>",
    f"</textarea></style></pre><iframe srcdoc='<script>parent.pwned=1</script>'><a href='javascript:{PROBE}'>x</a>",
    f"[link](javascript:{PROBE}) ![image](http://127.0.0.1:9/x.png) {{{{constructor.constructor('{PROBE}')()}}}}",
    f"$\\href{{javascript:{PROBE}}}{{x}}$ $\\includegraphics{{http://127.0.0.1:9/x.png}}$ $\\url{{http://127.0.0.1:9}}$",
    "$\\label{samples} \\ref{samples}$ $\\htmlId{samples}{x}$ $\\style{background:url(http://127.0.0.1:9/x)}{x}$",
    "$\\def\\a{\\a\\a}\\a$ $\\rule{99999em}{99999em}$ $\\kern{-9999em}x$ \\[" + "\\frac{" * 300 + "\\]",
    "$" + "{" * 1900 + "}" * 50 + "$ " + "$x$" * 5000,
    "\u2028 \u2029 \x00 \x1b[31mred\x1b[0m \u202eright to left\u202c \ufeff \u200b \x07 \ufffe",
    "```python\nx = '</code></pre><script>window.pwned = 1</script>'\n```\n```" + "`" * 2000 + "\nnever closed",
    "```constructor\n1\n```\n```__proto__\n2\n```\n```extend\n3\n```",
    "x" * 1_000_000,
    "`" * 5000 + "\\(" * 5000 + "\\begin{align}" * 500 + "$$" * 4000,
    "<think>" + f"<script>{PROBE}</script>" + "</think>" + "after",
    "<think>never ends <b>bold</b>",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start as root.
        options = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def open_report(browser: Any) -> Iterator[Any]:
    """Opens a report and fails at the end where the page complained or asked for anything."""
    contexts: list[Any] = []
    faults: list[str] = []
    requests: list[str] = []

    def open(path: Path, address: str = "", **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri() + address)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open
    pages = [page for context in contexts for page in context.pages]
    assert all(len(context.pages) == 1 for context in contexts)
    assert not [page for page in pages if page.evaluate("window.pwned")]
    for context in contexts:
        context.close()
    assert not faults
    assert len(requests) == len(contexts) and all(url.startswith("file:") for url in requests)


def response(model: str, benchmark: str, row: int, index: int) -> Mapping[str, Any]:
    text = f"Sample {index} of problem {row} by {model}. So $x^{{2}} = {row}$ and\n\n\\[\\sum_i i = {index}\\]"
    if benchmark == "code":
        text = f"```python\ndef f(x):\n    return x + {row}  # {model}\n```"
        return {"text": text, "extracted": f"def f(x):\n    return x + {row}", "details": {"passed": 1, "total": 3}}
    thought = f"<think>Let me see, {model}.</think>\n" if index == 0 else ""
    return {"text": thought + text, "finish_reason": "length" if (row, index) == (3, 1) else "stop"}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    generator = np.random.default_rng(0)
    scores = {
        name: {"math": generator.random((30, 4)) < share, "code": generator.random((12, 2)) < share}
        for name, share in (("token", 0.3), ("balanced", 0.8))
    }
    models = {name: {"aggregation": name, "step": 100} for name in scores}
    run = make_run(folder / "run", scores, models=models, benchmarks={"code": {"kind": "code"}}, change=response)
    asks = [
        ProblemRecord(id=f"p{at}", statement=f"Solve $x^2 = {at}$.", golds=(f"\\sqrt{{{at}}}",)) for at in range(30)
    ]
    with RunFolder(run) as writer:
        writer.write_problems("math", asks)
    write_report(load(run), folder / "report.html")
    return folder / "report.html"


def evil_id(number: int) -> str:
    return f"{number} {HOSTILE[number][:80]}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    run = make_run(
        folder / "run",
        {EVIL: {EVIL: np.zeros((len(HOSTILE), 1))}},
        benchmarks={EVIL: {"problem_ids": tuple(map(evil_id, range(len(HOSTILE))))}},
        change=lambda m, b, row, index: {
            "text": HOSTILE[row],
            "reason": HOSTILE[row][:300],
            "extracted": HOSTILE[row][:500],
            "details": {HOSTILE[row][:50]: HOSTILE[row][:50]},
        },
    )
    with RunFolder(run) as writer:
        asks = (ProblemRecord(id=evil_id(at), statement=text, golds=(text[:99],)) for at, text in enumerate(HOSTILE))
        writer.write_problems(EVIL, asks)
    write_report(load(run), folder / "report.html")
    return folder / "report.html"


def rows(page: Any) -> list[list[str]]:
    found: list[list[str]] = page.eval_on_selector_all(
        "#sample-rows tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return found


def until(page: Any, condition: str) -> None:
    """Waits for an expression of the page. Playwright's own waiting evaluates strings there, which the page forbids."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never: {condition}")


def count(page: Any) -> int:
    """Samples found, once the list stands still."""
    page.wait_for_timeout(300)  # typing is waited for
    before = None
    while (said := str(page.inner_text("#sample-range"))) != before:
        before = said
        page.wait_for_timeout(100)
    return 0 if said == "no samples" else int(said.split(" of ")[1].split()[0].replace(",", ""))


def test_all_sections_are_there_and_the_first_sample_is_shown(report: Path, open_report: Any) -> None:
    page = open_report(report)
    assert page.title() == "run: ba-eval report"
    for name in ("Scores", "Differences", "pass@k", "Response length", "Problem by problem", "Samples"):
        assert page.get_by_role("heading", name=name, exact=True).is_visible()
    assert page.locator("figure svg").count() >= 8
    page.wait_for_selector(".pane .response")
    assert "All 288 samples are in this file." in page.inner_text("#samples")
    assert count(page) == 288


def test_filters_narrow_the_list(report: Path, open_report: Any) -> None:
    page = open_report(report)
    page.select_option("#f-model", label="balanced")
    assert count(page) == 144
    page.select_option("#f-benchmark", label="code")
    assert count(page) == 24
    page.select_option("#f-outcome", label="wrong")
    wrong = count(page)
    assert 0 < wrong < 24
    assert {(row[0], row[1], row[2], row[4]) for row in rows(page)} == {("wrong", "balanced", "code", "not equal")}
    options = page.eval_on_selector_all("#f-reason option", "all => all.map(one => one.textContent)")
    assert options == ["any", f"not equal ({wrong})"]
    page.click("text=Clear")
    assert count(page) == 288
    page.check("#f-cut")
    assert count(page) == 2
    page.click("text=Clear")
    page.fill("#f-problem", "p1")  # a whole name stands for itself: not p10, p11
    assert count(page) == 2 * (4 + 2)
    page.fill("#f-problem", "P2")
    assert count(page) == 2 * (4 * 11 + 2)
    page.fill("#f-problem", "")
    page.fill("#f-text", "SAMPLE 3 OF PROBLEM 7 by")
    until(page, "document.getElementById('sample-status').textContent.startsWith('2 samples with')")
    assert count(page) == 2
    page.fill("#f-text", "nothing holds this")
    until(page, "document.getElementById('sample-status').textContent.startsWith('0 samples with')")
    assert count(page) == 0


def test_math_code_thinking_and_details_are_shown(report: Path, open_report: Any) -> None:
    page = open_report(report, "#sample=token/math/p5/0")
    page.wait_for_selector(".pane .response")
    assert page.locator(".pane math").count() == 2
    assert (
        page.locator(".pane .display math munder, .pane .display math munderover, .pane .display math msub").count()
        >= 1
    )
    until(page, "document.querySelectorAll('#statement math').length === 2")
    assert page.locator("#sample-rows tr[aria-current=true]").inner_text().split()[1:5] == ["token", "math", "p5", "#0"]
    assert "Accepted answer: " in page.inner_text("#statement")
    thinking = page.locator(".thinking")
    assert not thinking.get_by_text("Let me see").is_visible()
    thinking.locator("summary").click()
    thinking.get_by_text("Let me see, token.").wait_for(state="visible")
    page.check("#f-plain")
    page.wait_for_selector(".pane pre.wrapped")
    assert "$x^{2} = 5$" in page.inner_text(".pane") and page.locator(".pane math").count() == 0
    page = open_report(report, "#sample=balanced/code/p3/1")
    page.wait_for_selector(".pane pre")
    assert page.locator(".pane .token.keyword").all_inner_texts() == ["def", "return"]
    page.click("text=How it was graded")
    until(page, """document.querySelector('.pane').innerText.includes('"total": 3')""")
    page.click("text=What was extracted")
    until(page, "document.querySelectorAll('.pane pre').length === 3")


def test_two_models_stand_side_by_side(report: Path, open_report: Any) -> None:
    page = open_report(report, "#sample=token/math/p4/2")
    page.select_option("#f-other", label="balanced")
    until(page, "document.querySelectorAll('.pane .response').length === 2")
    texts = page.locator(".pane .response").all_inner_texts()
    assert "Sample 2 of problem 4 by token" in texts[0] and "Sample 2 of problem 4 by balanced" in texts[1]
    left, right = (page.locator(".pane").nth(at).bounding_box() for at in (0, 1))
    assert left["y"] == right["y"] and right["x"] >= left["x"] + left["width"]
    page.locator(".pane").nth(1).get_by_label("Next sample of this problem").click()
    until(page, "document.querySelectorAll('.pane .response')[1]?.textContent.includes('Sample 3')")
    assert "Sample 2" in page.locator(".pane .response").first.inner_text()
    page.check("#f-differ")
    differing = count(page)
    assert 0 < differing < 144
    assert {row[1] for row in rows(page)} == {"token"}


def test_the_keyboard_is_enough(report: Path, open_report: Any) -> None:
    page = open_report(report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.locator("#sample-rows button").first.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#sample-rows tr").nth(2).get_attribute("aria-current") == "true"
    assert page.evaluate("document.activeElement.closest('tr').getAttribute('aria-current')") == "true"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for _ in range(25):
        page.keyboard.press("ArrowDown")
    assert page.inner_text("#sample-range").startswith("26–50")
    page.locator("#sample-table th[data-key=tokens] button").focus()
    page.keyboard.press("Enter")
    assert page.locator("#sample-table th[data-key=tokens]").get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert page.locator("#sample-table th[data-key=tokens]").get_attribute("aria-sort") == "descending"
    assert rows(page)[0][5] == "103"


def test_tables_sort_by_their_headers(report: Path, open_report: Any) -> None:
    page = open_report(report)
    assert page.locator("#scores tbody th").first.inner_text() == "token"
    header = page.locator("#scores thead th").nth(2)
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert page.locator("#scores tbody th").first.inner_text() == "balanced"
    header.locator("button").click()
    assert page.locator("#scores tbody th").first.inner_text() == "token"


def test_the_problem_table_leads_to_samples(report: Path, open_report: Any) -> None:
    page = open_report(report)
    page.click("text=Table of problems")
    page.wait_for_selector("#p-table tbody tr")
    means = page.eval_on_selector_all(
        "#p-table tbody td:nth-child(2)", "all => all.map(one => Number(one.textContent))"
    )
    assert means == sorted(means, reverse=True)
    page.locator("#p-table thead button", has_text="problem").click()
    assert page.locator("#p-table tbody th").first.inner_text() == "p0"
    page.get_by_label("balanced, p1: show samples").click()
    assert count(page) == 4
    assert {(row[1], row[2], row[3].split()[0]) for row in rows(page)} == {("balanced", "math", "p1")}


def test_light_and_dark(report: Path, open_report: Any) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        page = open_report(report, color_scheme=scheme)
        colours[scheme] = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
            " getComputedStyle(document.querySelector('#pass_at_k svg path[style*=\"--c0\"]')).stroke]"
        )
    assert colours["light"][0] == "rgb(255, 255, 255)" and colours["dark"][0] == "rgb(20, 22, 26)"
    assert all(a != b for a, b in zip(colours["light"], colours["dark"], strict=True))


def test_narrow_screens_do_not_scroll_sideways(report: Path, open_report: Any) -> None:
    page = open_report(report, viewport={"width": 360, "height": 700})
    page.wait_for_selector(".pane .response")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_it_prints(report: Path, open_report: Any, tmp_path: Path) -> None:
    page = open_report(report)
    page.wait_for_selector(".pane .response")
    page.emulate_media(media="print")
    for hidden in ("nav", "#filters", "#sample-table", "#p-details"):
        assert not page.locator(hidden).first.is_visible()
    assert page.locator("#scores table").first.is_visible()
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_controls_and_tables_have_names(report: Path, open_report: Any) -> None:
    page = open_report(report)
    page.click("text=Table of problems")
    page.wait_for_selector("#p-table tbody tr")
    unnamed = page.evaluate("""() => [...document.querySelectorAll("select, input, button, table, section, [role=img]")]
        .filter(one => !(one.labels?.length || one.textContent.trim() && one.tagName === "BUTTON" ||
            one.ariaLabel || one.caption?.textContent || document.getElementById(one.getAttribute("aria-labelledby"))))
        .map(one => one.outerHTML.slice(0, 200))""")
    assert unnamed == []
    assert page.evaluate("[...document.querySelectorAll('th')].every(one => one.scope)")
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(one => Number(one.tagName[1]))")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in itertools.pairwise(levels))
    for landmark in ("banner", "navigation", "main", "contentinfo", "search"):
        assert page.get_by_role(landmark).count() == 1


def test_hostile_samples_stay_text(hostile: Path, open_report: Any) -> None:
    page = open_report(hostile)
    for plain in (False, True):
        page.locator("#f-plain").set_checked(plain)
        for number, text in enumerate(HOSTILE):
            address = "/".join(quote(part, safe="") for part in (EVIL, EVIL, evil_id(number), "0"))
            page.evaluate("address => { location.hash = address; }", f"#sample={address}")
            pane = page.locator(".pane")
            until(page, f"document.querySelector('.pane .meta').textContent.includes(' / {number} ')")
            until(page, "document.querySelector('.pane > div:last-child').textContent !== '…'")
            for details in pane.locator("details > summary").all():
                details.click()
            until(page, "[...document.querySelectorAll('.pane details')].every(one => one.childElementCount === 2)")
            shown = pane.text_content()
            if text.isprintable() and len(text) < 10_000 and "think>" not in text and (plain or "$" not in text):
                assert text in shown
            if number == 9:
                assert all(sign in shown for sign in ("U+2028", "U+0000", "U+001B", "U+202E", "U+FEFF", "U+200B"))
                assert "\u202e" not in shown and "\x1b" not in shown
            if "think>" in text:
                assert "after" in pane.locator(".response, .wrapped").all_inner_texts() or "never ended" in shown
            for place in (pane, page.locator("#statement")):
                bad = place.locator("script, img, iframe, a, object, [href], [src], [onload], [onerror], math [id]")
                assert bad.count() == 0
            assert page.locator("main > section").count() == page.locator("section").count() >= 5
    page.fill("#f-text", "<script>")
    assert count(page) == sum("<script>" in text for text in HOSTILE)
