"""The machine of one reservation: records, answers and time in; records and requests out.

    wanted ─► asked ─► checking ─► held ─► committing ─► (committed) ─► provisioned ─► released ─► gone
       ▲        │         └─► given up ─► removed; a change given up leaves what was in service
       └────────┘ not listed by the provider after a while: the request never arrived

The provider's list decides about everything that has an effect there; answers and callbacks only hurry the machine,
or bring words: the granted criteria, the reason of a failure. So lost, late, early, repeated and foreign callbacks
change nothing. `reserve` is repeated only after the list has lacked it for SETTLE_US; should the first one arrive
after all, the list shows two connections with our global id, and the second one is removed. The other operations are
repeated when the list shows that they had no effect: each try has a correlation id of its own, as SuPA demands.
"""

from collections.abc import Callable
from dataclasses import replace

from downburst.domain.ordering.providers import Provider
from downburst_circuits.nsi.comparing import differences, granted
from downburst_circuits.nsi.record import Ask, Goal, Life, Reservation, Sent, Stage, Strays
from downburst_circuits.nsi.refusals import Kind, Problem, different, hold_expired, is_state, is_unknown, refusal
from downburst_circuits.nsi.words import Acknowledged, Fault, Operation, ProvisionState, Request, Told


def due(
    one: Reservation, description: str, now_us: int, ids: Callable[[], str]
) -> tuple[Reservation, Request] | None:
    """The next request, and the record to be stored before it is sent."""
    strays = one.strays.connection_ids
    if strays and (one.strays.sent_at_us == 0 or now_us >= one.strays.sent_at_us + STRAY_PAUSE_US):
        request = Request(Operation.TERMINATE, ids(), connection_id=strays[0])
        return replace(one, strays=Strays((*strays[1:], strays[0]), now_us)), request
    operation = _operation(one)
    if operation is None or now_us < _not_before_us(one, operation):
        return None
    if operation is Operation.RESERVE and one.ask is not None and is_past(one.ask, now_us):
        # OpenNSA keeps such an order in its calendar, and then fails to serve others on the same VLAN.
        return None
    tries = one.sent.tries + 1 if one.sent and one.sent.operation is operation else 1
    sent = Sent(operation, ids(), now_us, tries)
    one = _with_sent(one, sent)
    return one, _request(one, sent, description)


def is_past(ask: Ask, now_us: int) -> bool:
    """True if the end of the window has passed: it is asked for no more, and the next list makes it fail."""
    return ask.criteria.end_us is not None and ask.criteria.end_us <= now_us


def ended(one: Reservation) -> Reservation:
    """The reservation, to be removed at the provider. One that was never asked for is gone immediately."""
    if one.connection_id is None and one.ask is not None and one.ask.stage is Stage.WANTED and one.sent is None:
        return replace(one, goal=Goal.END, life=Life.GONE, ask=None)
    return replace(one, goal=Goal.END)


def answered(one: Reservation, correlation_id: str, answer: Acknowledged | Fault, provider: Provider) -> Reservation:
    """The record after the answer to its last request; any other answer changes nothing."""
    if one.sent is None or one.sent.correlation_id != correlation_id:
        return one
    one = replace(one, sent=replace(one.sent, answered=True, acknowledged=isinstance(answer, Acknowledged)))
    if isinstance(answer, Acknowledged):
        return _acknowledged(one, answer)
    if answer.exception is None or is_unknown(answer) or is_state(answer):
        return one
    return _refused(one, refusal(provider.name, answer.exception, one.ask.criteria if one.ask else one.granted))


def unsent(one: Reservation, correlation_id: str) -> Reservation:
    """The record after a last request that has not left the hub: as if it had not been due."""
    if one.sent is None or one.sent.correlation_id != correlation_id:
        return one
    first, ask = one.sent.tries == 1, one.ask
    if ask is not None and one.sent.operation is Operation.RESERVE:
        ask = replace(ask, stage=Stage.WANTED, correlation_id="" if first else ask.correlation_id)
    elif ask is not None and one.sent.operation is Operation.COMMIT:
        ask = replace(ask, stage=Stage.HELD)
    return replace(one, ask=ask, sent=None if first else replace(one.sent, tries=one.sent.tries - 1))


def confirmed(one: Reservation, told: Told, provider: Provider) -> Reservation:
    """The record after the provider has told the criteria that it holds."""
    if one.ask is None or one.ask.stage not in (Stage.ASKED, Stage.CHECKING):
        return one
    if one.life is not Life.RESERVING:
        told = replace(told, source=told.source or one.ask.criteria.source, dest=told.dest or one.ask.criteria.dest)
    found = differences(one.ask.criteria, told, service_type=provider.service_type, asked_at_us=one.ask.asked_at_us)
    if found:
        return given_up(one, different(provider.name, found))
    ask = replace(one.ask, stage=Stage.HELD, granted=granted(one.ask.criteria, told), granted_version=told.version)
    return replace(one, ask=ask)


def committed(one: Reservation, *, sure: bool) -> Reservation:
    """The record after its criteria were committed."""
    if one.ask is None:
        return one
    return replace(
        one,
        life=Life.COMMITTED if one.life is Life.RESERVING else one.life,
        granted=one.ask.granted,
        committed_at_us=one.sent.at_us if one.sent else one.ask.asked_at_us,
        version=one.ask.version,
        commit_is_sure=sure or one.commit_is_sure,
        ask=None,
        sent=None,
    )


def given_up(one: Reservation, problem: Problem) -> Reservation:
    """A first negotiation ends the reservation, a change leaves it as it was."""
    if one.life is Life.RESERVING or one.ask is None:
        return replace(one, goal=Goal.END, problem=one.problem or problem)
    return replace(one, ask=replace(one.ask, stage=Stage.GIVEN_UP), change_problem=problem, sent=None)


def not_provisioned(one: Reservation, provider: Provider) -> Reservation:
    """The record while the list shows a committed reservation as released: given up after some answers."""
    sent = one.sent
    if sent is None or sent.operation is not Operation.PROVISION or not sent.answered or sent.acknowledged:
        return one
    if sent.tries < (PROVISION_TRIES if one.commit_is_sure else UNSURE_PROVISION_TRIES):
        return one
    if one.commit_is_sure:
        sentence = f"provider {provider.name} does not provision the reservation that it committed; ask its operator"
        return given_up(one, Problem(Kind.STATE, sentence))
    return given_up(one, hold_expired(provider.name))


def lost(one: Reservation, sentence: str) -> Reservation:
    """The provider has ended it, or lists it no more."""
    problem = None if one.goal is Goal.END else Problem(Kind.ENDED, sentence)
    return replace(one, life=Life.GONE, goal=Goal.END, ask=None, problem=one.problem or problem)


def _operation(one: Reservation) -> Operation | None:
    if one.life is Life.GONE:
        return None
    if one.goal is Goal.END:
        return _ending_operation(one)
    if one.ask is not None and (operation := _ASKING.get(one.ask.stage)) is not None:
        return operation
    return Operation.PROVISION if one.life is Life.COMMITTED and not _is_moving(one) else None


def _is_moving(one: Reservation) -> bool:
    """True while the provider works on the data plane: repeating a request would only be refused."""
    return one.seen is not None and one.seen.provision in (ProvisionState.PROVISIONING, ProvisionState.RELEASING)


def _ending_operation(one: Reservation) -> Operation | None:
    if one.connection_id is None:
        return None
    provisioned = one.seen is not None and one.seen.provision is ProvisionState.PROVISIONED
    return Operation.RELEASE if provisioned and one.life is Life.PROVISIONED else Operation.TERMINATE


def _not_before_us(one: Reservation, operation: Operation) -> int:
    """The same operation is repeated after a pause that grows; a provider that has taken it gets some time."""
    if one.sent is None or one.sent.operation is not operation:
        return 0
    if one.sent.acknowledged:
        return one.sent.at_us + ACKNOWLEDGED_PAUSE_US
    return one.sent.at_us + min(FIRST_PAUSE_US << min(one.sent.tries - 1, 10), LONGEST_PAUSE_US)


def _with_sent(one: Reservation, sent: Sent) -> Reservation:
    ask = one.ask
    if ask is not None and sent.operation is Operation.RESERVE:
        ask = replace(ask, stage=Stage.ASKED, correlation_id=sent.correlation_id, asked_at_us=sent.at_us)
        if one.life is Life.RESERVING and ask.criteria.begin_us is not None and ask.criteria.begin_us <= sent.at_us:
            # OpenNSA refuses a begin in the past; without one it begins immediately.
            ask = replace(ask, criteria=replace(ask.criteria, begin_us=None))
    if ask is not None and sent.operation is Operation.COMMIT:
        ask = replace(ask, stage=Stage.COMMITTING)
    return replace(one, sent=sent, ask=ask)


def _request(one: Reservation, sent: Sent, description: str) -> Request:
    if sent.operation is not Operation.RESERVE or one.ask is None:
        return Request(sent.operation, sent.correlation_id, connection_id=one.connection_id)
    return Request(
        Operation.RESERVE,
        sent.correlation_id,
        connection_id=one.connection_id,
        global_id=one.global_id,
        description=description,
        version=one.ask.version,
        criteria=one.ask.criteria,
    )


def _acknowledged(one: Reservation, answer: Acknowledged) -> Reservation:
    if one.sent is None or one.sent.operation is not Operation.RESERVE or one.ask is None:
        return one
    connection_id = one.connection_id or answer.connection_id
    if connection_id is None or one.ask.stage is not Stage.ASKED:
        return replace(one, connection_id=connection_id)
    return replace(one, connection_id=connection_id, ask=replace(one.ask, stage=Stage.CHECKING))


def _refused(one: Reservation, problem: Problem) -> Reservation:
    """A definite refusal of the last request."""
    operation = one.sent.operation if one.sent else None
    if operation is Operation.RESERVE:
        if one.life is Life.RESERVING:
            reason = problem if one.goal is Goal.SERVE else one.problem
            return replace(one, life=Life.GONE, goal=Goal.END, ask=None, problem=reason)
        return replace(one, ask=None, change_problem=problem, sent=None)
    if operation in (Operation.COMMIT, Operation.PROVISION):
        return given_up(one, problem)
    if operation is Operation.RELEASE:
        return replace(one, life=Life.RELEASED)
    return one


def new_ask(one: Reservation, ask: Ask) -> Reservation:
    """The reservation with a change to be negotiated."""
    return replace(one, ask=ask, change_problem=None, sent=None)


_SECOND_US = 1_000_000
SETTLE_US = 60 * _SECOND_US
"""Longer than a request may take on its way and a provider needs to list it."""
FIRST_PAUSE_US, LONGEST_PAUSE_US = 2 * _SECOND_US, 300 * _SECOND_US
ACKNOWLEDGED_PAUSE_US = 30 * _SECOND_US
STRAY_PAUSE_US = 30 * _SECOND_US
PROVISION_TRIES, UNSURE_PROVISION_TRIES = 8, 3
"""Answered, and without effect; after a commit that may not have arrived, an expired hold is the likely reason."""
_ASKING = {
    Stage.WANTED: Operation.RESERVE,
    Stage.HELD: Operation.COMMIT,
    Stage.GIVEN_UP: Operation.ABORT,
}
