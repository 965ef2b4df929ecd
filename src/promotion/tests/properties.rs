//! What holds for long histories: every event is Agent Wire, and the protocol's own reducer says the same of the route.

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{ACTS, Act, World, to_gate};
use super::*;
use crate::wire::{Contracts, Envelope, Event, Lineage, Reducer, WireId};

/// The text of an entry, as the sequencer writes it.
fn text((kind, sender, sequence, payload): &Entry, stream_seq: u64) -> String {
    let event = Event {
        wire_id: WireId::new(*sequence, [7; 10]),
        kind: *kind,
        sender: Sender::parse(sender).unwrap(),
        ts: at(*sequence),
        stream: StreamId::Route { route_key: KEY },
        stream_seq,
        correlation_id: "gw_example",
        lineage: Lineage::default(),
        traceparent: None,
    };
    event.to_text_with(payload).unwrap()
}

/// Every entry is valid, is taken by the reducer of the protocol, and comes to the same there.
fn agrees_with_the_protocol(stream: &Stream) {
    let mut reducer = Reducer::new(Contracts::embedded());
    for (entry, stream_seq) in stream.written.iter().zip(1..) {
        let text = text(entry, stream_seq);
        let envelope = Envelope::parse(&text).unwrap_or_else(|faults| panic!("{text}\n{faults:?}"));
        reducer.apply(&envelope).unwrap_or_else(|fault| panic!("{text}\n{fault}"));
    }
    let record = &stream.record;
    let Some((_, _, route)) = reducer.routes().next() else {
        assert_eq!(*record, RouteRecord::default());
        return;
    };
    assert_eq!(route.declared, record.declared.is_some());
    if let Some(declared) = &record.declared {
        assert_eq!(route.stage.as_deref(), Some(record.stage.as_str()));
        assert_eq!(route.declared_stage.as_deref(), Some(declared.stage.as_str()));
        assert_eq!(route.primary_agent_id.as_ref(), Some(&declared.primary_agent_id));
        assert_eq!(route.fallback_agent_id, declared.fallback_agent_id);
        let digest = declared.definition.as_ref().map(|definition| definition.digest.to_string());
        assert_eq!(route.route_digest, digest);
    }
    assert_eq!((route.blocked, route.epoch), (record.blocked, record.epoch));
    assert_eq!(route.pinned, record.pin.is_some());
    let gates: Vec<&str> = record.passes.keys().map(|gate| gate.as_str()).collect();
    assert_eq!(route.gates.iter().map(String::as_str).collect::<Vec<_>>(), gates);
    let canary = record.canary.as_ref();
    assert_eq!((route.canary, route.canary_done), (canary.is_some(), canary.map_or(0, |canary| canary.done)));
    let holder = canary.and_then(|canary| canary.holder.as_ref()).map(|holder| &holder.handoff_id);
    assert_eq!(route.canary_holder.as_ref(), holder);
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let mut all = ACTS.to_vec();
    all.push(Act::LiftPin);
    vec(proptest::sample::select(all), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_histories_keep_every_promise_and_are_agent_wire(begin in 0_usize..6, acts in acts()) {
        let start = PromotionGate::ALL.get(begin).map(|gate| to_gate(*gate)).unwrap_or_default();
        let mut world = World::reached(&start);
        for act in acts {
            let before = world.clone();
            if world.act(act) {
                world.check();
            } else {
                world = before;
            }
        }
        world.check_replay();
        agrees_with_the_protocol(&world.stream);
        // A snapshot in the middle is as good as all that came before it.
        let kept = serde_json::to_string(&world.stream.record).unwrap();
        prop_assert_eq!(&serde_json::from_str::<RouteRecord>(&kept).unwrap(), &world.stream.record);
    }
}
