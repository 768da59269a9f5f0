"""The page that `autograder report` writes, in a real browser: it sorts, it fits, and runs nothing from a student."""

import pytest

from autograder.tests.command import autograder
from autograder.tests.course import STAGE
from autograder.tests.small_class import BUGS, HOSTILE, small_class

WIDTHS = (1280, 420)
_COLUMN = "(rows, column) => rows.map(row => row.cells[column].innerText.trim())"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    small_class(folder)
    path = folder / "page.html"
    run = autograder("report", STAGE.name, "--output", path, cwd=folder)
    assert run.returncode == 0, run.stderr
    return path.as_uri()


@pytest.fixture
def report(page, address):
    """The open page; any browser error or request for another address fails the test."""
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: request.url == address or page.complaints.append(request.url))
    page.goto(address)
    yield page
    assert page.complaints == []


def column(page, number):
    return page.eval_on_selector_all("#students tbody tr", _COLUMN, number)


def test_a_heading_sorts_by_its_column_and_again_the_other_way_round(report):
    students = column(report, 0)
    assert students[-1] == "unsolved" and len(students) == 16
    score = report.get_by_role("button", name="score (of 14)")
    score.click()
    lowest = column(report, 1)
    numbers = [float(n) for n in lowest if n]
    assert numbers == sorted(numbers) and lowest[-2:] == ["", ""]  # what was not graded comes last
    assert report.get_by_role("columnheader", name="score").get_attribute("aria-sort") == "ascending"
    assert report.locator("#sorted").inner_text() == "Sorted by score, ascending."
    score.click()
    assert column(report, 1) == [f"{n:g}" for n in sorted(numbers, reverse=True)] + ["", ""]
    assert report.locator("[aria-sort]").count() == 1
    report.get_by_role("button", name="student").click()
    names = column(report, 0)
    assert names.index("student-2") < names.index("student-10")  # numbers in names are numbers


def test_each_check_can_be_sorted_by_and_equal_rows_keep_their_order(report):
    for number in range(1, report.locator("#students thead th.check").count() + 1):
        report.get_by_role("button", name=f"{number}. ").first.click()
        points = [float(n) for n in column(report, number + 1) if n]
        assert points == sorted(points)
    report.get_by_role("button", name="student").click()
    report.get_by_role("button", name="named bug").click()
    with_reset = [n for n, bug in zip(column(report, 0), column(report, 11), strict=True) if "positions" in bug]
    assert with_reset == [f"student-{n}" for n in range(1, BUGS["positions-reset"] + 1)]


def test_it_works_from_the_keyboard(report):
    report.get_by_role("button", name="student").focus()
    report.keyboard.press("Tab")
    assert report.evaluate("document.activeElement.innerText").startswith("score")
    report.keyboard.press("Enter")
    report.keyboard.press("Space")
    assert report.locator("#sorted").inner_text() == "Sorted by score, descending."
    assert report.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    report.locator("#students summary").first.focus()
    report.keyboard.press("Enter")
    assert report.locator("#students details[open] dd").first.is_visible()


def test_it_is_named_for_those_who_do_not_see_it(report):
    for image in report.get_by_role("img").all():
        assert "Number of students by " in image.get_attribute("aria-label")
    assert report.get_by_role("img").count() == 2
    assert report.locator("#students thead th[scope=col]").count() == report.locator("#students thead th").count()
    assert report.locator("#students tbody th[scope=row]").count() == 16
    levels = report.eval_on_selector_all("h1, h2, h3", "heads => heads.map(head => Number(head.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert report.get_by_role("columnheader", name="3. The suffix continues").count() == 1
    assert report.locator("html").get_attribute("lang") == "en"


def test_nothing_of_a_students_runs(report):
    assert report.title() == "4. Save and reuse a prefix cache: the class"
    assert HOSTILE in column(report, 0)
    assert report.locator("img").count() == 0
    assert report.locator("script").count() == 1


def test_the_policy_stops_a_script_that_is_not_the_pages(page, address):
    page.goto(address)
    page.evaluate(
        "() => { const s = document.createElement('script'); s.text = 'document.title = 1'; document.body.append(s) }"
    )
    assert page.title() != "1"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(report, width, scheme, screenshots):
    report.set_viewport_size({"width": width, "height": 900})
    report.emulate_media(color_scheme=scheme)
    assert report.evaluate("document.documentElement.scrollWidth") <= width
    low = report.evaluate(_LOW_CONTRAST)
    assert low == []
    report.screenshot(path=str(screenshots / f"report-{scheme}-{width}.png"), full_page=True)


def test_its_top_can_be_shown_in_a_lecture(report, screenshots):
    """`make report-picture` puts the picture of it into course/images/."""
    report.set_viewport_size({"width": 780, "height": 1300})
    heading = "What to know before the scores go out"
    top = report.locator("body").inner_text().partition(heading)[0]
    assert "Three things to talk about" in top and "14 graded, 2 not graded" in top
    assert not any(name in top for name in ("student-", "right", "unsolved", "broken", HOSTILE))
    end = report.get_by_role("heading", name="Checks, most failed first").bounding_box()["y"]
    report.screenshot(path=str(screenshots / "report.png"), clip={"x": 0, "y": 0, "width": 780, "height": end})


def test_the_parts_of_a_bar_differ_without_color(report):
    fills = report.eval_on_selector_all(
        ".legend rect", "parts => parts.map(part => getComputedStyle(part).fill.replaceAll('\"', ''))"
    )
    assert fills == ["rgb(0, 103, 163)", "url(#dots)", "url(#hatch)", "rgb(255, 255, 255)"]
    assert report.eval_on_selector(".lost", "cell => getComputedStyle(cell).fontWeight") == "700"


def test_it_prints_whole_and_on_white(report, screenshots):
    report.emulate_media(media="print", color_scheme="dark")
    assert report.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    heights = report.eval_on_selector(".tall", "box => [box.clientHeight, box.scrollHeight]")
    assert heights[0] == heights[1]
    assert not report.locator(".on-screen").is_visible()
    report.screenshot(path=str(screenshots / "report-print.png"), full_page=True)
    assert len(report.pdf(prefer_css_page_size=True)) > 10_000


# Texts that stand out less than 4.5 to 1 from what is behind them
_LOW_CONTRAST = """() => {
  const parse = color => (color.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.querySelectorAll("main *")) {
    if (![...element.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(element);
    const ink = parse(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(`${element.tagName} ${element.className} ${ink}`);
  }
  return low;
}"""
