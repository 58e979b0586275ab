"""Routes of tests with load, which book their rate in the calendar."""

from fastapi import APIRouter, Response

from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Hub, Number
from downburst_contract import topology as shapes

router = APIRouter(prefix="/v1", tags=["circuits"])


@router.get("/test-bookings")
async def list_test_bookings(hub: Hub, page: Paged) -> list[shapes.BookedTest]:
    """The tests that run, and the last of those that are over, by number."""
    booked = await hub.circuits.tests.booked()
    return page.of(map(shapes.BookedTest.of, reversed(booked)), "number")


@router.post(
    "/test-bookings",
    status_code=201,
    responses={200: {"description": "It has to wait."}, 404: {}, 409: {"description": "It does not fit in a day."}},
)
async def book_test(hub: Hub, wanted: shapes.WantedTest, response: Response) -> shapes.BookingAnswered:
    """Books a test's rate for its seconds from now on, or says when it would fit."""
    answer = shapes.BookingAnswered.of(await hub.circuits.tests.book(wanted.to_model()))
    if not answer.granted:
        response.status_code = 200
    return answer


@router.delete("/test-bookings/{number}", status_code=204, responses={404: {}})
async def release_test(hub: Hub, number: Number) -> None:
    """Ends a booking before its time, as the test is over."""
    await hub.circuits.tests.release(number)
