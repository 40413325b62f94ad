"""Puts a measured table into a page: what scripts that take --record share."""
import pathlib

DOCS = pathlib.Path(__file__).resolve().parent.parent / 'docs'


def put(page, name, text):
    """Replaces what stands between <!-- NAME --> and <!-- /NAME --> in a page of docs."""
    path = DOCS / page
    begin, end = f'<!-- {name} -->\n', f'<!-- /{name} -->'
    before, rest = path.read_text(encoding='utf-8').split(begin)
    path.write_text(f'{before}{begin}\n{text.strip()}\n\n{end}{rest.split(end)[1]}', encoding='utf-8')


def markdown(header, rows):
    """A table; header and each row are lists of cells."""
    lines = [header, ['---'] * len(header), *rows]
    return '\n'.join('| ' + ' | '.join(str(cell) for cell in line) + ' |' for line in lines)
