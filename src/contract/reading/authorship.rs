//! The typed reading of `authorship`: in whose name, under which policy, with what proof.

use super::Shape;
use crate::contract::field::Field;
use crate::contract::taskspec::{Authorship, Binding, Envelope, Mention, Policy, Proof, Risk};
use crate::contract::text::PrincipalId;
use crate::json::Value;

impl Shape {
    pub(super) fn authorship<'d>(&mut self, block: Value<'d>) -> Authorship<'d> {
        let mut authorship = Authorship::default();
        let read = self.object(block, |shape, name, value| {
            let delegation = &mut authorship.delegation;
            match name {
                "mode" => authorship.mode = shape.word(value),
                "mentionDelegationMode" => authorship.mention_mode = shape.word(value),
                "delegationPolicy" => delegation.policy = shape.policy(value),
                "envelope" => delegation.envelope = shape.envelope(value),
                "risk" => delegation.risk = shape.risk(value),
                "mentionDelegation" => authorship.mention = shape.mention(value),
                _ => return false,
            }
            true
        });
        if !read {
            authorship.mode = Field::Unreadable;
            authorship.mention_mode = Field::Unreadable;
        }
        authorship
    }

    fn policy<'d>(&mut self, block: Value<'d>) -> Field<Policy<'d>> {
        let mut policy = Policy::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "policyRef" => policy.policy_ref = shape.text(value),
                "allowAgents" => policy.allow_agents = shape.names(value, 1),
                "allowChannels" => policy.allow_channels = shape.names(value, 1),
                "allowTasks" => policy.allow_tasks = shape.names(value, 1),
                _ => return false,
            }
            true
        });
        if !read {
            return Field::Unreadable;
        }
        self.require(&policy.policy_ref);
        self.require(&policy.allow_agents);
        self.require(&policy.allow_channels);
        self.require(&policy.allow_tasks);
        Field::Is(policy)
    }

    fn envelope<'d>(&mut self, block: Value<'d>) -> Field<Envelope<'d>> {
        let mut envelope = Envelope::default();
        let (mut principal, mut delegate, mut scope, mut ttl) = (false, false, false, false);
        let read = self.object(block, |shape, name, value| {
            match name {
                "principal" => (principal, envelope.principal_id) = (true, shape.principal(value)),
                "delegateAgent" => {
                    delegate = true;
                    shape.delegate(&mut envelope, value);
                }
                "scope" => {
                    scope = true;
                    shape.scope(&mut envelope, value);
                }
                "ttl" => {
                    ttl = true;
                    shape.ttl(&mut envelope, value);
                }
                "binding" => envelope.binding = shape.binding(value),
                "proof" => envelope.proof = shape.proof(value),
                _ => return false,
            }
            true
        });
        if !read {
            return Field::Unreadable;
        }
        if !(principal && delegate && scope && ttl) {
            self.refuse();
        }
        self.require(&envelope.proof);
        envelope.block = Some(block);
        Field::Is(envelope)
    }

    fn principal<'d>(&mut self, block: Value<'d>) -> Field<PrincipalId<'d>> {
        let mut id = Field::Absent;
        let read = self.object(block, |shape, name, value| {
            match name {
                "id" => id = shape.text(value),
                "type" => {
                    if !matches!(value.as_str(), Some("human" | "service-account")) {
                        shape.refuse();
                    }
                }
                _ => return false,
            }
            true
        });
        if read {
            self.require(&id);
        }
        id
    }

    fn delegate<'d>(&mut self, envelope: &mut Envelope<'d>, block: Value<'d>) {
        let read = self.object(block, |shape, name, value| {
            match name {
                "agentId" => envelope.delegate_agent_id = shape.text(value),
                "sessionId" => envelope.delegate_session_id = shape.text(value),
                _ => return false,
            }
            true
        });
        if read {
            self.require(&envelope.delegate_agent_id);
        }
    }

    fn scope<'d>(&mut self, envelope: &mut Envelope<'d>, block: Value<'d>) {
        let read = self.object(block, |shape, name, value| {
            match name {
                "agents" => envelope.scope_agents = shape.names(value, 0),
                "channels" => envelope.scope_channels = shape.names(value, 0),
                "tasks" => envelope.scope_tasks = shape.names(value, 0),
                _ => return false,
            }
            true
        });
        if read {
            self.require(&envelope.scope_agents);
            self.require(&envelope.scope_channels);
            self.require(&envelope.scope_tasks);
        }
    }

    fn ttl<'d>(&mut self, envelope: &mut Envelope<'d>, block: Value<'d>) {
        let read = self.object(block, |shape, name, value| {
            match name {
                "issuedAt" => envelope.issued_at = shape.instant(value),
                "expiresAt" => envelope.expires_at = shape.instant(value),
                _ => return false,
            }
            true
        });
        if read {
            self.require(&envelope.issued_at);
            self.require(&envelope.expires_at);
        }
    }

    fn binding<'d>(&mut self, block: Value<'d>) -> Field<Binding<'d>> {
        let mut binding = Binding::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "handoffId" => binding.handoff_id = shape.text(value),
                "intentHash" => binding.intent_hash = shape.text(value),
                "messageId" => binding.message_id = shape.text(value),
                "channel" => binding.channel = shape.text(value),
                _ => return false,
            }
            true
        });
        if !read {
            return Field::Unreadable;
        }
        if block.size() == 0 {
            self.refuse();
        }
        Field::Is(binding)
    }

    fn proof<'d>(&mut self, block: Value<'d>) -> Field<Proof<'d>> {
        let mut proof = Proof::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "algorithm" => proof.algorithm = shape.text(value),
                "signature" => proof.signature = shape.text(value),
                "hash" => proof.hash = shape.text(value),
                "keyId" => proof.key_id = shape.text(value),
                _ => return false,
            }
            true
        });
        if !read {
            return Field::Unreadable;
        }
        self.require(&proof.algorithm);
        self.require(&proof.signature);
        self.require(&proof.hash);
        Field::Is(proof)
    }

    fn risk<'d>(&mut self, block: Value<'d>) -> Field<Risk<'d>> {
        let mut risk = Risk::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "classification" => risk.classification = shape.word(value),
                "requiresConfirmation" => risk.requires_confirmation = shape.flag(value),
                "authorizationRef" => risk.authorization_ref = shape.text(value),
                _ => return false,
            }
            true
        });
        if !read {
            return Field::Unreadable;
        }
        self.require(&risk.classification);
        Field::Is(risk)
    }

    fn mention<'d>(&mut self, block: Value<'d>) -> Field<Mention<'d>> {
        let mut mention = Mention::default();
        let mut dedupe_by = false;
        let read = self.object(block, |shape, name, value| {
            match name {
                "channel" => mention.channel = shape.text(value),
                "messageId" => mention.message_id = shape.text(value),
                "originBotId" => mention.origin_bot_id = shape.text(value),
                "targetBotId" => mention.target_bot_id = shape.text(value),
                "observedAt" => {
                    mention.observed_at = shape.instant(value);
                    mention.observed_at_text = value.as_str();
                }
                "ttlSeconds" => mention.ttl_seconds = shape.integer(value, 5, 3600),
                "dedupeBy" => dedupe_by = value.as_str() == Some("messageId"),
                _ => return false,
            }
            true
        });
        if !read {
            return Field::Unreadable;
        }
        self.require(&mention.channel);
        self.require(&mention.message_id);
        self.require(&mention.origin_bot_id);
        self.require(&mention.target_bot_id);
        self.require(&mention.observed_at);
        self.require(&mention.ttl_seconds);
        if !dedupe_by {
            self.refuse();
        }
        Field::Is(mention)
    }
}
