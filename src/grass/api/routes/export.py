"""The route that sends all jobs of a filter as a table, a page at a time."""

from collections.abc import AsyncIterator
from functools import partial

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from grass.api.access.viewers import presenter, viewer
from grass.api.context import context_of
from grass.api.payloads import job_filter, selector_words, sorting
from grass.errors import UsageError
from grass.queries import job_export
from grass.queries.job_export import CSV, JSON
from grass.queries.selection import check_known, reading
from grass.store.interface import JobFilter, SortedPage, Sorting, SortKey, Store

PAGE = 200
MEDIA_TYPES = {CSV: "text/csv; charset=utf-8", JSON: "application/json"}


async def export(request: Request) -> Response:
    """Send all jobs that match as CSV or JSON."""
    query = request.query_params
    form = query.get("format", CSV)
    if form not in MEDIA_TYPES:
        raise UsageError(f"`{form}` is not a format", "use csv or json")
    columns = job_export.columns_from(query.get("columns"))
    wanted, order = job_filter(query), sorting(query)
    await check_known(context_of(request).broker, selector_words(query))
    pages = _pages(request, wanted, order or Sorting(SortKey.ID), form, columns)
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="jobs.{form}"',
    }
    return StreamingResponse(pages, media_type=MEDIA_TYPES[form], headers=headers)


async def _pages(
    request: Request,
    wanted: JobFilter,
    order: Sorting,
    form: str,
    columns: tuple[str, ...],
) -> AsyncIterator[bytes]:
    broker, who = context_of(request).broker, viewer(request)
    read = reading(broker, wanted.selection)
    yield job_export.head(form, columns)
    first = True
    while True:
        found = await read(partial(_page, wanted=wanted, order=order))
        jobs = await presenter(request).jobs(who, found.jobs)
        yield job_export.body(form, columns, jobs, first=first)
        first = False
        if found.next is None:
            break
        order = replace(order, place=found.next)
    yield job_export.tail(form)


def _page(store: Store, wanted: JobFilter, order: Sorting) -> SortedPage:
    return store.sorted_jobs(wanted, order, PAGE)
