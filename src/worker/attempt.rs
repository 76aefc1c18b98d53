//! One attempt: finds the kind's code, runs it, settles the task.

use std::sync::Arc;

use tracing::Instrument as _;

use crate::client::Amocrm;
use crate::config::{AmocrmTarget, Target, TargetKind, Task, TaskKind};
use crate::domain::{Ending, FollowUp, ReasonCode, Settlement, State};
use crate::effect::{Steps, Stop, crash_point};
use crate::store::{Holder, LeasedTask, Settled};
use crate::worker::{Context, deal, note, notice};

/// The kinds that this build can run; a file of a later build may hold others, which wait.
pub(super) fn kinds() -> Vec<String> {
    ["deal", "note", "notice"].map(str::to_owned).to_vec()
}

/// Everything that one attempt works with.
pub(super) struct Attempt<'a> {
    pub(super) context: &'a Context,
    pub(super) leased: &'a LeasedTask,
    pub(super) target: &'a Target,
    pub(super) access: &'a AmocrmTarget,
    pub(super) crm: &'a Amocrm,
    pub(super) steps: Steps,
}

impl Attempt<'_> {
    /// Passes where a read that says "absent" may be believed.
    ///
    /// Reads come from replicas, so one is not after our own change of that kind of
    /// object, nor in the first moments after the event: it is asked again.
    pub(super) fn believe_absence(&self, kind: &str) -> Result<(), Stop> {
        let view = self.context.store.view()?;
        let id = self.leased.id();
        let began = view.task(id)?.and_then(|task| task.since);
        let ours = view.intents_of_task(id)?.into_iter().filter(|intent| intent.object_kind == kind);
        let changed = ours.filter(|intent| intent.state == "applied").filter_map(|intent| intent.settled_at).max();
        let lag = self.target.search_lag + self.target.doubt_tail;
        let passed = began.max(changed).map_or(lag, |at| self.context.clock.now().since(at));
        if passed >= lag {
            return Ok(());
        }
        let text = format!("the CRM does not show the {kind}, which may lag; it is read again");
        Err(Stop::Retry { after: Some(lag - passed), text })
    }
}

/// Runs a task to its settlement.
pub(super) async fn run(context: Context, leased: LeasedTask) {
    let seed = leased.seed();
    let span = tracing::info_span!("task", trace = %seed.trace, task = %leased.id(), kind = %seed.kind);
    async {
        crash_point(&format!("{}/task/leased", leased.seed().kind));
        let notice = notice::for_dead_attempt(&context.config, &leased);
        let settlement = Settlement { notice, ..attempt(&context, &leased).await };
        crash_point(&format!("{}/task/settling", leased.seed().kind));
        settle(&context, leased, settlement).await;
    }
    .instrument(span)
    .await;
}

async fn attempt(context: &Context, leased: &LeasedTask) -> Settlement {
    let seed = leased.seed();
    let unknown = |what: &str| {
        let text = format!("the configuration has no {what}; bring it back, then retry the task");
        Settlement::new(Ending::Dead(ReasonCode::CONFIGURATION), text)
    };
    let config = Arc::clone(&context.config);
    let Some(task) = config.tasks.get(&seed.name) else { return unknown(&format!("task `{}`", seed.name)) };
    let (Some(target), Some(crm)) = (config.targets.get(&seed.target), context.accounts.get(&seed.target)) else {
        return unknown(&format!("target `{}`", seed.target));
    };
    let TargetKind::Amocrm(access) = &target.kind;
    let steps = Steps::new(
        context.store.clone(),
        context.clock.clone(),
        context.metrics.clone(),
        Holder::Task(leased.ticket()),
        &seed.kind,
        target.doubt_wait(),
    );
    let attempt = Attempt { context, leased, target, access, crm, steps };
    // What is worth telling is told whatever the attempt comes to.
    let mut follow_ups = Vec::new();
    let settlement = match work(&attempt, task, &mut follow_ups).await {
        Ok(()) => Settlement::new(Ending::Done, ""),
        Err(Stop::Hold { text }) => Stop::Hold { text: format!("{text}, then: {}", resume(&target.name)) }.into(),
        Err(stop) => stop.into(),
    };
    Settlement { follow_ups, ..settlement }
}

async fn work(attempt: &Attempt<'_>, task: &Task, follow_ups: &mut Vec<FollowUp>) -> Result<(), Stop> {
    match &task.kind {
        TaskKind::Deal(deal) => deal::run(attempt, deal, follow_ups).await,
        TaskKind::Note(note) => note::run(attempt, note).await,
        TaskKind::Notice(notice) => notice::run(attempt, notice).await,
    }
}

/// What a person types once a target is usable again.
fn resume(target: &str) -> String {
    format!("tambour resume {target}")
}

async fn settle(context: &Context, leased: LeasedTask, settlement: Settlement) {
    let (id, seed) = (leased.id(), leased.seed().clone());
    let attempt = leased.attempts().next();
    let (ending, text) = (settlement.ending.clone(), settlement.text.clone());
    let word = ending.as_str();
    match context.store.settle(leased, settlement).await {
        Ok(Settled::Now { state, due }) => {
            context.metrics.task_settled(&seed.kind, &ending);
            let due = due.map(tracing::field::display);
            let state_word = state.as_str();
            // What a person must act on is an error, with what to type.
            let command = match &ending {
                Ending::Hold => Some(resume(&seed.target)),
                _ => (state == State::Dead).then(|| format!("tambour trace {id}")),
            };
            let Some(command) = command else {
                tracing::info!(%attempt, ending = word, state = state_word, due, text, "attempt settled");
                return;
            };
            let reason = match &ending {
                Ending::Hold => None,
                Ending::Dead(reason) => Some(reason.as_str()),
                _ => Some(ReasonCode::ATTEMPTS_SPENT.as_str()),
            };
            tracing::error!(%attempt, ending = word, state = state_word, reason, due, text, command, "attempt settled");
        }
        Ok(Settled::StaleLease) => tracing::warn!(ending = word, "the lease is another's; nothing was settled"),
        Err(error) => tracing::error!(%error, ending = word, "the attempt could not be settled"),
    }
}
