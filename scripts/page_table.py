"""Puts a measured table into a page: what scripts that take --record share."""
import pathlib

DOCS = pathlib.Path(__file__).resolve().parent.parent / 'docs'


class NoPlace(Exception):
    """A page has no place for a table; the text names the page and the marker."""


def check_places(page, names):
    """Raises NoPlace unless each table has its place in a page of docs. For before anything is measured."""
    for name in names:
        _split(page, name)


def put(page, name, text):
    """Replaces what stands between <!-- NAME --> and <!-- /NAME --> in a page of docs."""
    before, _, behind = _split(page, name)
    (DOCS / page).write_text(f'{before}<!-- {name} -->\n\n{text.strip()}\n\n<!-- /{name} -->{behind}', encoding='utf-8')


def get(page, name):
    """What stands between the markers, without the lines around it."""
    return _split(page, name)[1].strip()


def put_row(page, name, header, row, order=()):
    """Puts one row into such a table, in the place of the one with the same first cell. For what is measured row by row
    over days. `order`: first cells as they shall stand; others come last."""
    rows = [cells for cells in _rows(page, name) if cells[0] != row[0]] + [[str(cell) for cell in row]]
    places = {cell: place for place, cell in enumerate(order)}
    rows.sort(key=lambda cells: places.get(cells[0], len(places)))
    put(page, name, markdown(header, rows))


def _rows(page, name):
    """The cells of a table's rows, without the header."""
    lines = [line for line in _split(page, name)[1].splitlines() if line.startswith('|')]
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines[2:]]


def _split(page, name):
    """(what stands before the first marker, between the two, behind the second)."""
    begin, end = f'<!-- {name} -->\n', f'<!-- /{name} -->'
    try:
        text = (DOCS / page).read_text(encoding='utf-8')
    except OSError as error:
        raise NoPlace(f'docs/{page}: {error.strerror}') from error
    for marker in (begin, end):
        if text.count(marker) != 1:
            raise NoPlace(f'docs/{page} has {text.count(marker)} lines {marker.strip()}, one is needed')
    before, _, rest = text.partition(begin)
    if end not in rest:
        raise NoPlace(f'docs/{page}: {end} stands before {begin.strip()}')
    between, _, behind = rest.partition(end)
    return before, between, behind


def markdown(header, rows):
    """A table; header and each row are lists of cells."""
    lines = [header, ['---'] * len(header), *rows]
    return '\n'.join('| ' + ' | '.join(str(cell) for cell in line) + ' |' for line in lines)
