//! Which task state may follow which, and nothing else decides that.
//!
//! ```text
//!              lease                 settle
//!   new ─────────────────▶ running ─────────▶ done        one success
//!    ▲  ◀── event, replay ─┐  │  │ └────────▶ superseded  no longer wanted
//!    │                     │  │  └──────────▶ dead        waits for a person
//!    └──── (any end) ──────┘  └─────────────▶ retry       waits for its due time
//! ```
//!
//! Two pure functions: [`apply`] for what comes to a task from outside (an
//! event, a person), [`end`] for what a run came to. Both are total: every
//! cell of the design's table is one line here and one row of the test. The
//! store carries verdicts out and knows no rule of its own.

use std::time::Duration;

use crate::domain::{ATTEMPTS_MAX, Attempt, ReasonCode};

/// Where a task stands. `dead` is the only state that waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waits for its first attempt, or for a fresh one after an end.
    New,
    /// Leased by this process.
    Running,
    /// Waits for its due time after an attempt that may be repeated.
    Retry,
    /// Ended with its work done.
    Done,
    /// Ended because nobody wants it any more; the reason says why.
    Superseded,
    /// Ended without its work done; a person decides.
    Dead,
}

impl State {
    /// All states, in reading order.
    pub const ALL: [Self; 6] = [Self::New, Self::Running, Self::Retry, Self::Done, Self::Superseded, Self::Dead];

    /// The word used everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Running => "running",
            Self::Retry => "retry",
            Self::Done => "done",
            Self::Superseded => "superseded",
            Self::Dead => "dead",
        }
    }

    /// Whether the task stands in its lane and blocks those behind it.
    pub const fn is_unfinished(self) -> bool {
        matches!(self, Self::New | Self::Running | Self::Retry)
    }
}

/// The business decision about repeats of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One success for this key, ever.
    Once(OnReturn),
    /// One unfinished task for this key: bring the target up to date.
    Latest,
}

/// What an event on a spent key does.
///
/// `after` and `by-terms` are refused by the configuration until they are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnReturn {
    /// What was made stays; the event is recorded.
    Keep,
}

/// What reached a running task; looked at when the run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// An event came.
    pub event: bool,
    /// A person asked for a replay.
    pub replay: bool,
}

/// What comes to a task from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stimulus {
    /// A new event routed to the task's key.
    Event,
    /// A person runs the stored event through today's rules.
    Replay,
    /// A person wants the next attempt now.
    Retry,
    /// A person ends it.
    Close,
}

/// What [`apply`] needs to know of a task row and its key row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The present state.
    pub state: State,
    /// A fact of the key row: set by `done` or a person's `close`, never cleared.
    pub spent: bool,
    /// Why the task is dead or superseded; absent in the other states.
    pub reason: Option<ReasonCode>,
    /// What reached it while running; empty in the other states.
    pub memory: Memory,
}

/// What to do with the task row; the stimulus itself is recorded in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The waiting task will do this event's work too.
    Absorb,
    /// Absorb; due at most one first pause from now, unless its target is down.
    AbsorbEarlier,
    /// Due now.
    DueNow,
    /// Keep in mind until the run ends.
    Remember(Memory),
    /// State `new`, attempts 0, due now.
    Renew,
    /// Nothing but the record: the key is spent and its `on_return` keeps, or a
    /// person must first say what happened.
    RecordOnly,
    /// State `superseded`, reason `closed`; `spends` marks the key.
    Close {
        /// Whether the key is spent by it (mode `once`).
        spends: bool,
    },
    /// The key becomes spent, the row stays as it is.
    Spend,
    /// Not possible in this state.
    Refuse(NotNow),
}

/// Why a person's wish is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// It has ended well; `replay` runs it again.
    #[error("it has ended; `tambour replay` runs it again")]
    Ended,
    /// It is being worked on.
    #[error("it is running; wait until its attempt ends")]
    Running,
}

/// Says what a stimulus does to a task.
pub fn apply(mode: Mode, standing: &Standing, stimulus: Stimulus) -> Verdict {
    let once = matches!(mode, Mode::Once(_));
    match (standing.state, stimulus) {
        (State::New, Stimulus::Event) if once => Verdict::Absorb,
        (State::New | State::Retry, Stimulus::Event) => Verdict::AbsorbEarlier,
        (State::New | State::Retry, Stimulus::Replay) => Verdict::Renew,
        (State::New | State::Retry, Stimulus::Retry) => Verdict::DueNow,
        (State::New | State::Retry | State::Dead, Stimulus::Close) => Verdict::Close { spends: once },

        (State::Running, Stimulus::Event) => Verdict::Remember(Memory { event: true, ..standing.memory }),
        (State::Running, Stimulus::Replay) => Verdict::Remember(Memory { replay: true, ..standing.memory }),
        (State::Running, Stimulus::Retry | Stimulus::Close) => Verdict::Refuse(NotNow::Running),

        (State::Done | State::Superseded | State::Dead, Stimulus::Event) => event_after_end(mode, standing),
        (State::Done | State::Superseded | State::Dead, Stimulus::Replay) => Verdict::Renew,
        (State::Dead, Stimulus::Retry) => Verdict::Renew,
        (State::Done | State::Superseded, Stimulus::Retry) => Verdict::Refuse(NotNow::Ended),
        (State::Superseded, Stimulus::Close) if once => Verdict::Spend,
        (State::Done | State::Superseded, Stimulus::Close) => Verdict::Refuse(NotNow::Ended),
    }
}

/// An event on an ended task: also asked when a run ends with an event in memory.
fn event_after_end(mode: Mode, standing: &Standing) -> Verdict {
    let waits_for_a_person =
        standing.state == State::Dead && standing.reason.as_ref().is_some_and(ReasonCode::waits_for_a_person);
    match mode {
        Mode::Once(OnReturn::Keep) if standing.spent => Verdict::RecordOnly,
        _ if waits_for_a_person => Verdict::RecordOnly,
        Mode::Once(_) | Mode::Latest => Verdict::Renew,
    }
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The work is done.
    Done,
    /// The work is not wanted any more.
    Superseded(ReasonCode),
    /// A person must decide.
    Dead(ReasonCode),
    /// Worth repeating, after the target's own wish for a pause if it gave one.
    Retry(Option<Duration>),
    /// Its target is held: back to where it was leased from.
    Hold,
    /// Must wait for another's intent or for the end of a doubt; counts as no attempt.
    Wait(Duration),
    /// The lease was lost: usually the process died.
    Lost,
}

impl Ending {
    /// The word in logs and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Superseded(_) => "superseded",
            Self::Dead(_) => "dead",
            Self::Retry(_) => "retry",
            Self::Hold => "hold",
            Self::Wait(_) => "wait",
            Self::Lost => "lost",
        }
    }
}

/// How a task stands after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The state that follows.
    pub state: State,
    /// The settled attempts that follow; 0 for a fresh start.
    pub attempts: Attempt,
    /// Why it is dead or superseded.
    pub reason: Option<ReasonCode>,
    /// Whether the key is spent from now on.
    pub spends: bool,
    /// The target's own wish for a pause (`retry`).
    pub retry_after: Option<Duration>,
    /// Due after this, whatever the schedule of pauses says.
    pub due_in: Option<Duration>,
}

/// Says how a running task stands after its run.
///
/// `leased_from` is `new` or `retry`; `attempts` are those settled before this run.
pub fn end(mode: Mode, leased_from: State, attempts: Attempt, standing: &Standing, ending: Ending) -> Ended {
    let ended = end_without_memory(mode, leased_from, attempts, ending);
    let renewed = Ended {
        state: State::New,
        attempts: Attempt::default(),
        reason: None,
        spends: ended.spends,
        retry_after: None,
        due_in: Some(Duration::ZERO),
    };
    if standing.memory.replay {
        return renewed;
    }
    let after = Standing {
        state: ended.state,
        spent: standing.spent || ended.spends,
        reason: ended.reason.clone(),
        memory: Memory::default(),
    };
    let wants_another_run =
        standing.memory.event && !ended.state.is_unfinished() && event_after_end(mode, &after) == Verdict::Renew;
    if wants_another_run { renewed } else { ended }
}

fn end_without_memory(mode: Mode, leased_from: State, attempts: Attempt, ending: Ending) -> Ended {
    let counted = attempts.next();
    let base = Ended { state: leased_from, attempts, reason: None, spends: false, retry_after: None, due_in: None };
    match ending {
        Ending::Done => Ended { state: State::Done, attempts: counted, spends: matches!(mode, Mode::Once(_)), ..base },
        Ending::Superseded(reason) => {
            Ended { state: State::Superseded, attempts: counted, reason: Some(reason), ..base }
        }
        Ending::Dead(reason) => Ended { state: State::Dead, attempts: counted, reason: Some(reason), ..base },
        Ending::Retry(_) if counted.get() >= ATTEMPTS_MAX => {
            Ended { state: State::Dead, attempts: counted, reason: Some(ReasonCode::ATTEMPTS_SPENT), ..base }
        }
        Ending::Retry(retry_after) => Ended { state: State::Retry, attempts: counted, retry_after, ..base },
        Ending::Hold | Ending::Lost => Ended { due_in: Some(Duration::ZERO), ..base },
        Ending::Wait(pause) => Ended { due_in: Some(pause), ..base },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONCE: Mode = Mode::Once(OnReturn::Keep);
    const LATEST: Mode = Mode::Latest;

    fn standing(state: State) -> Standing {
        Standing { state, spent: false, reason: None, memory: Memory::default() }
    }

    fn dead(reason: ReasonCode) -> Standing {
        Standing { reason: Some(reason), ..standing(State::Dead) }
    }

    fn spent(of: Standing) -> Standing {
        Standing { spent: true, ..of }
    }

    /// The design's table, row by row: event once, event latest, replay, retry, close once, close latest.
    #[test]
    fn the_whole_table_of_stimuli() {
        use Stimulus::{Close, Event, Replay, Retry};
        use Verdict::{Absorb, AbsorbEarlier, DueNow, RecordOnly, Refuse, Remember, Renew, Spend};
        let close = |spends| Verdict::Close { spends };
        let remember = |event, replay| Remember(Memory { event, replay });
        let rows: Vec<(Standing, [Verdict; 6])> = vec![
            (standing(State::New), [Absorb, AbsorbEarlier, Renew, DueNow, close(true), close(false)]),
            (standing(State::Retry), [AbsorbEarlier, AbsorbEarlier, Renew, DueNow, close(true), close(false)]),
            (
                standing(State::Running),
                [
                    remember(true, false),
                    remember(true, false),
                    remember(false, true),
                    Refuse(NotNow::Running),
                    Refuse(NotNow::Running),
                    Refuse(NotNow::Running),
                ],
            ),
            (
                spent(standing(State::Done)),
                [RecordOnly, Renew, Renew, Refuse(NotNow::Ended), Refuse(NotNow::Ended), Refuse(NotNow::Ended)],
            ),
            (standing(State::Superseded), [Renew, Renew, Renew, Refuse(NotNow::Ended), Spend, Refuse(NotNow::Ended)]),
            (
                spent(standing(State::Superseded)),
                [RecordOnly, Renew, Renew, Refuse(NotNow::Ended), Spend, Refuse(NotNow::Ended)],
            ),
            (dead(ReasonCode::VALIDATION), [Renew, Renew, Renew, Renew, close(true), close(false)]),
            (dead(ReasonCode::OUTCOME_UNKNOWN), [RecordOnly, RecordOnly, Renew, Renew, close(true), close(false)]),
            (dead(ReasonCode::AMBIGUOUS), [RecordOnly, RecordOnly, Renew, Renew, close(true), close(false)]),
            (dead(ReasonCode::WORKER_LOST), [RecordOnly, RecordOnly, Renew, Renew, close(true), close(false)]),
            (spent(dead(ReasonCode::VALIDATION)), [RecordOnly, Renew, Renew, Renew, close(true), close(false)]),
        ];
        for (from, expected) in rows {
            let columns =
                [(ONCE, Event), (LATEST, Event), (ONCE, Replay), (ONCE, Retry), (ONCE, Close), (LATEST, Close)];
            for ((mode, stimulus), want) in columns.into_iter().zip(expected) {
                assert_eq!(apply(mode, &from, stimulus), want, "{from:?} {mode:?} {stimulus:?}");
            }
            for stimulus in [Replay, Retry] {
                assert_eq!(apply(LATEST, &from, stimulus), apply(ONCE, &from, stimulus), "{from:?} {stimulus:?}");
            }
        }
    }

    #[test]
    fn a_second_stimulus_adds_to_the_memory() {
        let running = Standing { memory: Memory { event: true, replay: false }, ..standing(State::Running) };
        let both = Memory { event: true, replay: true };
        assert_eq!(apply(ONCE, &running, Stimulus::Replay), Verdict::Remember(both));
        assert_eq!(apply(ONCE, &running, Stimulus::Event), Verdict::Remember(running.memory));
    }

    fn ended(mode: Mode, memory: Memory, spent: bool, ending: Ending) -> Ended {
        let standing = Standing { state: State::Running, spent, reason: None, memory };
        end(mode, State::Retry, Attempt::new(2), &standing, ending)
    }

    /// Every ending, both modes, without and with a remembered event.
    #[test]
    fn the_whole_table_of_endings() {
        let gone = || Ending::Superseded(ReasonCode::LEFT_STAGE);
        let bad = || Ending::Dead(ReasonCode::VALIDATION);
        let unknown = || Ending::Dead(ReasonCode::OUTCOME_UNKNOWN);
        let retry = || Ending::Retry(Some(Duration::from_secs(9)));
        // (ending, state after, attempts after, spends for once), then the state with an event in memory: once, latest
        type Row = (Ending, State, u32, bool, State, State);
        let rows: Vec<Row> = vec![
            (Ending::Done, State::Done, 3, true, State::Done, State::New),
            (gone(), State::Superseded, 3, false, State::New, State::New),
            (bad(), State::Dead, 3, false, State::New, State::New),
            (unknown(), State::Dead, 3, false, State::Dead, State::Dead),
            (retry(), State::Retry, 3, false, State::Retry, State::Retry),
            (Ending::Hold, State::Retry, 2, false, State::Retry, State::Retry),
            (Ending::Lost, State::Retry, 2, false, State::Retry, State::Retry),
            (Ending::Wait(Duration::from_secs(5)), State::Retry, 2, false, State::Retry, State::Retry),
        ];
        let event = Memory { event: true, replay: false };
        for (ending, state, attempts, spends, with_event_once, with_event_latest) in rows {
            let plain = ended(ONCE, Memory::default(), false, ending.clone());
            assert_eq!((plain.state, plain.attempts.get(), plain.spends), (state, attempts, spends), "{ending:?}");
            let latest = ended(LATEST, Memory::default(), false, ending.clone());
            assert_eq!((latest.state, latest.attempts.get(), latest.spends), (state, attempts, false), "{ending:?}");
            assert_eq!(ended(ONCE, event, false, ending.clone()).state, with_event_once, "{ending:?}");
            assert_eq!(ended(LATEST, event, false, ending.clone()).state, with_event_latest, "{ending:?}");
            let replay = ended(ONCE, Memory { event: false, replay: true }, false, ending.clone());
            assert_eq!((replay.state, replay.attempts.get()), (State::New, 0), "{ending:?}");
            assert_eq!(replay.spends, spends, "a replay does not forget that the key is spent: {ending:?}");
        }
    }

    #[test]
    fn a_replayed_once_task_that_dies_stays_spent() {
        let event = Memory { event: true, replay: false };
        assert_eq!(ended(ONCE, event, true, Ending::Dead(ReasonCode::VALIDATION)).state, State::Dead);
        assert_eq!(ended(ONCE, event, true, Ending::Superseded(ReasonCode::LEFT_STAGE)).state, State::Superseded);
    }

    #[test]
    fn pauses_are_handed_on() {
        let retry = ended(ONCE, Memory::default(), false, Ending::Retry(Some(Duration::from_secs(9))));
        assert_eq!((retry.retry_after, retry.due_in), (Some(Duration::from_secs(9)), None));
        let wait = ended(ONCE, Memory::default(), false, Ending::Wait(Duration::from_secs(5)));
        assert_eq!(wait.due_in, Some(Duration::from_secs(5)));
        assert_eq!(ended(ONCE, Memory::default(), false, Ending::Lost).due_in, Some(Duration::ZERO));
    }

    #[test]
    fn retries_are_bounded_by_attempts() {
        let standing = standing(State::Running);
        let last = end(LATEST, State::Retry, Attempt::new(ATTEMPTS_MAX - 1), &standing, Ending::Retry(None));
        assert_eq!((last.state, last.reason), (State::Dead, Some(ReasonCode::ATTEMPTS_SPENT)));
        let before = end(LATEST, State::Retry, Attempt::new(ATTEMPTS_MAX - 2), &standing, Ending::Retry(None));
        assert_eq!(before.state, State::Retry);
    }
}
