//! What decides: claims in ledger order, and the events that a decision is.

use std::sync::Arc;

use super::candidate::Candidate;
use super::claims::{Before, ClaimIndex};
use super::deadlines::{Deadlines, Looked};
use super::decide::{Step, own_facts, people, step};
use super::epoch::{Epoch, EpochFacts};
use super::facts::Facts;
use super::past::Past;
use super::record::{Decided, DryRun};
use super::recording::{Ruled, outcomes};
use super::replay::{self, Replay};
use super::routing::{Governing, PromotionRules, mode_of};
use super::shown::Shown;
use super::standing::{Changes, InForce, Putting, Standing};
use super::{EngineFault, World};
use crate::contract::Mode;
use crate::gates::{Decision, Human, decision_of};
use crate::ledger::{BatchBuilder, Entry, Head, Keeping, Notice};
use crate::policy::PolicySet;
use crate::timestamp::Timestamp;
use crate::wire::{Kind, Sender as WireSender};

/// Takes candidates one by one, in the order of the ledger.
pub(super) struct Sequencer {
    topic_id: String,
    index: ClaimIndex,
    /// The last entry that is durable, and its time.
    durable: (Head, Option<Timestamp>),
    /// The same, once the batch that is being written is durable.
    shipped: (Head, Option<Timestamp>),
    standing: Standings,
    /// Of it, and of what differs, what doors look at.
    shown: Arc<Shown>,
    world: Box<dyn World>,
    /// The time of what is being done: what is judged by one reading of the clock is not stamped with a later one.
    moment: Option<Timestamp>,
    /// What is in force; candidates judged under anything else are judged again.
    in_force: Option<Arc<InForce>>,
    /// The policy set as its files have it; what is in force may have other routes, while a rollback pins them.
    table: Option<Arc<PolicySet>>,
    promotion: PromotionRules,
    approval_wait_s: i64,
    keeping: Keeping,
    asks_first: bool,
    governing: Arc<Governing>,
    /// The time of the last entry, written or not: what a dry run goes by.
    tip: Option<Timestamp>,
    deadlines: Deadlines,
    looked: Looked,
    replay: Replay,
    /// Why what is here is not what the ledger says is in force.
    differs: Option<String>,
}

/// What is in force by the ledger.
struct Standings {
    durable: Arc<Standing>,
    /// With what is being written.
    shipped: Arc<Standing>,
    /// With what is being built, too.
    building: Standing,
}

impl Standings {
    fn each(&mut self) -> [&mut Standing; 3] {
        [Arc::make_mut(&mut self.durable), Arc::make_mut(&mut self.shipped), &mut self.building]
    }
}

/// What a sequencer goes by, beside what is in force.
pub(super) struct Terms {
    pub(super) promotion: PromotionRules,
    /// How long a handoff waits for a person, at most.
    pub(super) approval_wait_s: i64,
    pub(super) keeping: Keeping,
    /// A changed policy set comes into force with a person's yes.
    pub(super) asks_first: bool,
}

impl Sequencer {
    /// Takes up where the ledger ends: `past` knows what its views have applied, `history` are the entries behind.
    pub(super) fn rebuild(
        topic_id: &str,
        head: Head,
        last_timestamp: Option<Timestamp>,
        (past, at_hand): (Option<Box<dyn Past>>, usize),
        Terms { promotion, approval_wait_s, keeping, asks_first }: Terms,
        history: impl Iterator<Item = Result<Entry, EngineFault>>,
        world: Box<dyn World>,
    ) -> Result<Self, EngineFault> {
        let mut standing = Standing::default();
        let mut last = 0;
        if let Some(past) = &past {
            last = past.applied();
            for entry in past.standing()? {
                replay::standing(&entry, &mut standing)?;
            }
        }
        let mut index = ClaimIndex::on(past, at_hand)?;
        let mut replay = Replay::default();
        for entry in history {
            let entry = entry?;
            if entry.sequence != last + 1 {
                return Err(missing(last + 1));
            }
            last = entry.sequence;
            replay.entry(&entry, &mut index, &mut standing)?;
        }
        if last != head.sequence {
            return Err(missing(last + 1));
        }
        index.ship();
        index.keep();
        let soon = world.now();
        index.in_flight(&mut standing)?;
        // Whoever was claimed, waits for a person or holds a canary's slot is looked at soon.
        let mut watched = index.under_way()?;
        watched.extend(standing.inbox.by_end().map(|waiting| waiting.handoff_id.to_string()));
        let holders = standing.routes().filter_map(|(_, route)| route.canary.as_ref()?.holder.as_ref());
        watched.extend(holders.map(|holder| holder.handoff_id.clone()));
        let mut deadlines = Deadlines::default();
        watched.iter().for_each(|handoff_id| deadlines.look_again(soon, handoff_id));
        let at = (head, last_timestamp);
        let topic_id = topic_id.to_owned();
        let shipped = Arc::new(standing.clone());
        let standing = Standings { durable: shipped.clone(), shipped, building: standing };
        let shown = Arc::new(Shown::new(standing.shipped.clone(), asks_first));
        Ok(Self {
            topic_id,
            index,
            durable: at,
            shipped: at,
            standing,
            shown,
            world,
            moment: None,
            in_force: None,
            table: None,
            promotion,
            approval_wait_s,
            keeping,
            asks_first,
            governing: Arc::default(),
            tip: last_timestamp,
            deadlines,
            looked: Looked::default(),
            replay,
            differs: None,
        })
    }

    pub(super) fn index(&self) -> &ClaimIndex {
        &self.index
    }

    pub(super) fn index_mut(&mut self) -> &mut ClaimIndex {
        &mut self.index
    }

    pub(super) fn in_force(&self) -> Option<Arc<InForce>> {
        self.in_force.clone()
    }

    /// The policy set as its files have it.
    pub(super) fn table(&self) -> Option<Arc<PolicySet>> {
        self.table.clone()
    }

    /// What those who build answers look at.
    pub(super) fn watch_governing(&self) -> Arc<Governing> {
        self.governing.clone()
    }

    /// What doors look at.
    pub(super) fn watch(&self) -> Arc<Shown> {
        self.shown.clone()
    }

    fn show(&self) {
        self.shown.set_standing(self.standing.shipped.clone());
    }

    /// How long a handoff waits for a person, at most.
    pub(super) fn approval_wait_s(&self) -> i64 {
        self.approval_wait_s
    }

    pub(super) fn promotion(&self) -> &PromotionRules {
        &self.promotion
    }

    /// Puts routes in force that a rollback restored, over those of the files; nothing puts the files' back.
    pub(super) fn overlay(&mut self, overlaid: Option<Arc<PolicySet>>) {
        let (Some(in_force), Some(table)) = (&self.in_force, &self.table) else { return };
        let policies = overlaid.clone().unwrap_or_else(|| table.clone());
        if Arc::ptr_eq(&policies, &in_force.policies) {
            return;
        }
        let InForce { keyring, tokens, revoked, hands, withheld, consent, .. } = &**in_force;
        let laid = InForce {
            policies,
            keyring: keyring.clone(),
            tokens: tokens.clone(),
            revoked: revoked.clone(),
            hands: hands.clone(),
            withheld: withheld.clone(),
            overlaid: overlaid.is_some(),
            consent: consent.clone(),
        };
        self.governs(Arc::new(laid));
        for standing in self.standing.each() {
            standing.carry_over(self.in_force.as_ref());
        }
        self.show();
    }

    /// The world's time; the ledger's own may be ahead of it.
    pub(super) fn now(&self) -> Timestamp {
        self.moment.unwrap_or_else(|| self.world.now())
    }

    /// Does something that asks for the time more than once, and is told the same each time.
    pub(super) fn at_one_time<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        self.moment = Some(self.world.now());
        let done = act(self);
        self.moment = None;
        done
    }

    pub(super) fn random(&mut self) -> [u8; 10] {
        self.world.random()
    }

    /// Looks at a handoff at that time.
    pub(super) fn look_again(&mut self, at: Timestamp, handoff_id: &str) {
        self.deadlines.look_again(at, handoff_id);
    }

    /// The next handoff whose time has come.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Arc<str>> {
        self.deadlines.due(now)
    }

    /// What was looked at has led to something in the batch that is being built.
    pub(super) fn has_looked_at(&mut self, handoff_id: Arc<str>) {
        self.looked.add(handoff_id);
    }

    fn look_soon(&mut self, handoffs: Vec<Arc<str>>) {
        let now = self.world.now();
        handoffs.iter().for_each(|handoff_id| self.deadlines.look_again(now, handoff_id));
    }

    /// Is there anything to look at, now or later?
    pub(super) fn has_deadlines(&self) -> bool {
        !self.deadlines.is_empty()
    }

    fn governs(&mut self, in_force: Arc<InForce>) {
        self.governing.set(in_force.clone());
        self.in_force = Some(in_force);
    }

    /// From now on candidates are judged by this.
    pub(super) fn put_in_force(
        &mut self,
        in_force: Arc<InForce>,
        putting: &Putting,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        self.table = Some(in_force.policies.clone());
        self.governs(in_force.clone());
        if self.keeping == Keeping::Shared {
            let changes = self.standing.building.adopt_shared(&in_force, putting, self.asks_first);
            self.compare();
            self.record_changes(changes, batch)?;
        } else {
            self.record_own(batch)?;
        }
        self.overlay_pins();
        Ok(())
    }

    /// Sees whether what is here is what the ledger says is in force. Alone it is, unless it waits for a person's yes;
    /// what several gateways share may have been changed by another one.
    pub(super) fn compare(&mut self) {
        let Some(in_force) = &self.in_force else { return };
        self.differs = match self.keeping {
            Keeping::Shared => self.building().differs(in_force),
            _ => self.building().waits(in_force, self.asks_first),
        };
        self.shown.set_differs(self.agree().err());
    }

    /// A gateway whose rules are not those in force decides nothing.
    pub(super) fn agree(&self) -> Result<(), EngineFault> {
        let Some(why) = &self.differs else { return Ok(()) };
        let is_shared = self.keeping == Keeping::Shared;
        Err(if is_shared { EngineFault::Differs(why.clone()) } else { EngineFault::Waits(why.clone()) })
    }

    pub(super) fn keeping(&self) -> Keeping {
        self.keeping
    }

    /// Records what is in force, if the ledger says otherwise: after a change, at the first start, and again when
    /// the batch that said so failed.
    fn record_standing(&mut self, batch: &mut BatchBuilder<'_>) -> Result<(), EngineFault> {
        if self.keeping != Keeping::Shared {
            self.record_own(batch)?;
        }
        self.agree()
    }

    fn record_own(&mut self, batch: &mut BatchBuilder<'_>) -> Result<(), EngineFault> {
        let Some(in_force) = &self.in_force else { return Ok(()) };
        let Some(changes) = self.standing.building.adopt(in_force, self.asks_first) else { return Ok(()) };
        self.compare();
        self.record_changes(changes, batch)
    }

    fn record_changes(
        &mut self,
        Changes { policies, credentials }: Changes,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let differs = self.differs.is_some();
        if let (Some(before), Some(in_force)) = (policies, self.in_force.clone()) {
            let digest = in_force.policies.digest().to_string();
            self.record_consent(&in_force, batch)?;
            self.note_own(Kind::PolicyLoaded, WireSender::System, batch, |payload| {
                payload.text("digest", &digest);
                payload.text_or_null("previous_digest", before.as_deref());
            })?;
        }
        if !differs {
            self.declare_routes(batch)?;
        }
        let in_force = self.in_force.clone();
        for change in credentials {
            let sender =
                in_force.as_ref().map_or(WireSender::System, |in_force| in_force.hands.sender_of(&change));
            self.note_own(change.kind(), sender, batch, |payload| change.write(payload))?;
        }
        Ok(())
    }

    /// Begins the epoch of a restored ledger, unless the ledger says that already; says whether it did.
    pub(super) fn begin_epoch(
        &mut self,
        facts: &EpochFacts,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<bool, EngineFault> {
        if self.building().epoch.as_ref().is_some_and(|epoch| epoch.facts == *facts) {
            return Ok(false);
        }
        let begun =
            self.note_own(Kind::EpochBegun, WireSender::System, batch, |payload| facts.write(payload))?;
        self.building_mut().epoch = Some(Arc::new(Epoch { since: begun.at, facts: facts.clone() }));
        Ok(true)
    }

    /// Records something that a follower noticed.
    pub(super) fn record_notice(
        &mut self,
        notice: Notice,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let kind = match notice {
            Notice::StateReplaced => Kind::StateReplaced,
        };
        self.note_own(kind, WireSender::System, batch, |_| {}).map(drop)
    }

    /// Decides a candidate and adds what it gives to the batch; a replay adds nothing.
    pub(super) fn decide(
        &mut self,
        candidate: &mut Candidate,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Arc<Decided>, EngineFault> {
        self.at_one_time(|sequencer| sequencer.decide_at(candidate, batch))
    }

    fn decide_at(
        &mut self,
        candidate: &mut Candidate,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Arc<Decided>, EngineFault> {
        self.record_standing(batch)?;
        // Judged as of the decision's own entry, which is the second of its group.
        let now = batch.time(self.now()).plus_nanosecond();
        self.as_of(now, candidate)?;
        let candidate = &*candidate;
        let step = step(candidate, &self.index, self.building(), &self.topic_id, self.keeping, now)?;
        let (claims_say, before, cover) = match step {
            Step::Replay(decided) => return Ok(Arc::new(self.given_again(&decided, candidate, now)?)),
            Step::Decide { reasons, before, cover } => (reasons, before, cover),
        };
        self.index.room()?;
        let facts =
            own_facts(candidate).map(|facts| Facts { attempt: before.next_attempt(), ..facts.clone() });
        let gates = outcomes(candidate, &claims_say);
        let mut reasons = candidate.verdict.reasons().to_vec();
        reasons.extend(claims_say);
        let people = people(candidate, cover.as_ref());
        let human = if people > 0 { Human::Approval } else { Human::NotNeeded };
        let decision = decision_of(&reasons, &human);
        if decision == Decision::NeedsApproval {
            // Who would wait without a place is told to come back.
            self.building().inbox.room().map_err(|_| EngineFault::Busy)?;
        }
        let ruled = Ruled { decision, gates, reasons, people };
        let decided = Arc::new(self.record(candidate, facts.as_ref(), ruled, batch)?);
        if let Some(facts) = &facts {
            if let (Decision::Allowed, Some(Mode::Live), Some(route_key)) =
                (decision, mode_of(facts.mode.as_deref()), &facts.route_key)
            {
                self.goes_live(route_key, &facts.handoff_id, batch)?;
            }
            if let (Decision::Allowed, Some(cover)) = (decision, &cover) {
                self.use_grant(&cover.authorization_ref, &facts.handoff_id, cover.remaining, batch)?;
            }
            self.observe_mention(candidate, facts, &decided.reasons, &human, batch)?;
            let accepted =
                matches!(decision, Decision::Allowed | Decision::NeedsApproval).then(|| decided.clone());
            let sequence = decided.ledger.sequence;
            let content = Some(candidate.sealed().content_digest);
            self.index.take(facts, content, candidate.cycle(&self.topic_id), accepted, before, sequence);
        }
        Ok(decided)
    }

    /// What would be decided now; claims nothing and writes nothing.
    pub(super) fn dry_run(&self, candidate: &mut Candidate) -> Result<DryRun, EngineFault> {
        self.agree()?;
        let now = self.world.now();
        let at = self.tip.map_or(now, |tip| now.max(tip.plus_nanosecond()));
        self.as_of(at, candidate)?;
        let candidate = &*candidate;
        let step = step(candidate, &self.index, self.building(), &self.topic_id, self.keeping, at)?;
        let (claims_say, replay_of, before, cover) = match step {
            Step::Replay(decided) => (Vec::new(), Some(decided), self.before(candidate)?, None),
            Step::Decide { reasons, before, cover } => (reasons, None, before, cover),
        };
        let gates = outcomes(candidate, &claims_say);
        let mut reasons = candidate.verdict.reasons().to_vec();
        reasons.extend(claims_say);
        let people = people(candidate, cover.as_ref());
        let decision = decision_of(&reasons, if people > 0 { &Human::Approval } else { &Human::NotNeeded });
        let replay_of = match replay_of {
            Some(decided) => Some(Arc::new(self.given_again(&decided, candidate, at)?)),
            None => None,
        };
        Ok(DryRun {
            decision,
            handoff_id: candidate.facts.as_ref().map(|facts| facts.handoff_id.clone()),
            correlation_id: candidate.correlation_id.clone(),
            attempt: before.next_attempt(),
            at,
            gates,
            reasons,
            policy_digest: candidate.verdict.policy_digest().to_string(),
            waits_until: (decision == Decision::NeedsApproval)
                .then(|| candidate.verdict.approval_until(at, self.approval_wait_s)),
            replay_of,
        })
    }

    /// What is in force by the ledger, with all that is being built.
    pub(super) fn building(&self) -> &Standing {
        &self.standing.building
    }

    pub(super) fn building_mut(&mut self) -> &mut Standing {
        &mut self.standing.building
    }

    fn before(&self, candidate: &Candidate) -> Result<Before, EngineFault> {
        let cycle = candidate.cycle(&self.topic_id);
        own_facts(candidate).map_or_else(|| Ok(Before::default()), |facts| self.index.before(facts, cycle))
    }

    /// The sequencer has the last word: a verdict that no longer holds, by the ledger's own time, is given again.
    fn as_of(&self, now: Timestamp, candidate: &mut Candidate) -> Result<(), EngineFault> {
        if candidate.still_holds(self.in_force.as_deref(), now) {
            return Ok(());
        }
        let again = candidate.judged_again(self.in_force.as_deref(), now);
        *candidate = again
            .ok_or_else(|| EngineFault::NotDurable("the TaskSpec could not be read again".to_owned()))?;
        Ok(())
    }

    /// Remembers how far the batch that is being built has come.
    pub(super) fn reached(&mut self, batch: &BatchBuilder<'_>) {
        self.tip = batch.last_timestamp();
    }

    /// Starts the batch that goes out next.
    pub(super) fn new_batch(&self) -> BatchBuilder<'static> {
        let (head, time) = self.shipped;
        BatchBuilder::new(self.topic_id.clone(), head, time)
    }

    /// What the batch that goes out next is built on.
    pub(super) fn shipped_head(&self) -> Head {
        self.shipped.0
    }

    pub(super) fn topic_id(&self) -> &str {
        &self.topic_id
    }

    pub(super) fn ship(&mut self, head: Head, time: Timestamp) {
        self.index.ship();
        self.looked.ship();
        self.shipped = (head, Some(time));
        self.standing.shipped = Arc::new(self.standing.building.clone());
        self.show();
    }

    pub(super) fn keep(&mut self) {
        self.index.keep();
        self.looked.keep();
        self.durable = self.shipped;
        self.standing.durable = self.standing.shipped.clone();
    }

    /// Takes in one entry that others appended, and says which handoff it is about.
    pub(super) fn follow_one(&mut self, entry: &Entry) -> Result<Option<String>, EngineFault> {
        self.replay.entry(entry, &mut self.index, &mut self.standing.building)
    }

    /// What is known of a group whose other entries come later.
    pub(super) fn half_a_group(&self) -> Replay {
        self.replay.clone()
    }

    /// What was taken in was not all of it, and is not known any more.
    pub(super) fn unfollow(&mut self, group: Replay) {
        self.give_back();
        self.replay = group;
    }

    /// What was taken in is durable.
    pub(super) fn followed(&mut self, head: Head, time: Timestamp) {
        self.ship(head, time);
        self.keep();
        self.tip = Some(time);
    }

    /// A live handoff is under way, by the ledger.
    pub(super) fn take_off(&mut self, route_key: &str, handoff_id: &str) {
        for standing in self.standing.each() {
            standing.take_off(route_key, handoff_id);
        }
        self.show();
    }

    /// What is being built is not going to be written.
    pub(super) fn drop_building(&mut self) {
        self.index.drop_building();
        let looked = self.looked.drop_building();
        self.look_soon(looked);
        self.standing.building.clone_from(&self.standing.shipped);
        self.compare();
        self.overlay_pins();
    }

    pub(super) fn give_back(&mut self) {
        self.index.give_back();
        let looked = self.looked.give_back();
        self.look_soon(looked);
        self.shipped = self.durable;
        self.standing.shipped = self.standing.durable.clone();
        self.standing.building.clone_from(&self.standing.durable);
        self.show();
        self.compare();
        self.overlay_pins();
    }
}

pub(super) fn missing(sequence: u64) -> EngineFault {
    EngineFault::BadLedger(format!("entry {sequence} is missing from what was read of it"))
}
