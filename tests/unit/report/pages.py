"""A reader of pages that a browser and a screen reader would stumble over nowhere."""

from html.parser import HTMLParser

EMPTY = {"meta", "line", "circle", "rect", "polygon", "polyline"}
LOADING = {"src", "href", "xlink:href", "action", "srcset", "data", "background"}


class Page(HTMLParser):
    """Reads a page: what is open, the headings in order, the text; fails on what loads or runs anything."""

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "base", "form")
        names = {name for name, _ in attributes}
        assert not names & LOADING
        assert not any(name.startswith("on") or name == "style" for name in names)
        if dict(attributes).get("role") in ("img", "group", "region"):
            assert dict(attributes)["aria-label"]
        if tag in ("h1", "h2", "h3"):
            self.headings.append(int(tag[1]))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())


def read(text):
    """Return the page, whose headings begin with one h1 and never leave out a level."""
    page = Page(text)
    assert page.headings.count(1) == 1
    assert page.headings[0] == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    return page
