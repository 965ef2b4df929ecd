//! D3: is the risk stated honestly, and has a person said yes where one must?
//!
//! This is the form of it. Whether the grant that is named exists, still counts and covers the act is a
//! claim, decided in ledger order.

use super::codes::Code;
use super::verdict::{Findings, Human};
use crate::contract::{Mode, TaskSpec};
use crate::json::printable;
use crate::policy::DelegationPolicy;

pub(super) fn judge(spec: &TaskSpec<'_>, file: Option<&DelegationPolicy>, findings: &mut Findings) {
    let Some(risk) = spec.authorship.delegation.risk.get() else { return };
    let Some(class) = risk.classification.get() else { return };
    if let (Some(file), Some(operation)) = (file, spec.intent.operation.get())
        && let Some(floor) = file.floor(operation.as_str())
        && class < floor
    {
        findings.refuse(
            Code::RiskUnderstated,
            "/authorship/risk/classification",
            format!(
                "`{}` is at least {}, not {}",
                printable(operation.as_str()),
                floor.as_str(),
                class.as_str()
            ),
            format!("classify it as {} and meet what that asks for", floor.as_str()),
        );
    }
    if !class.needs_a_person() {
        return;
    }
    if risk.requires_confirmation.or_default_to(false) == Some(false) {
        findings.refuse(
            Code::ConfirmationRequired,
            "/authorship/risk/requiresConfirmation",
            format!("{} work must require confirmation", class.as_str()),
            "set authorship.risk.requiresConfirmation to true",
        );
    }
    if risk.authorization_ref.is_absent() {
        findings.refuse(
            Code::AuthorizationMissing,
            "/authorship/risk/authorizationRef",
            format!("{} work needs a person's authorization", class.as_str()),
            "ask an operator for a grant and name it in authorship.risk.authorizationRef",
        );
    }
}

/// Whose yes it needs: live work always a person's; delegated sensitive work a grant in any mode.
pub(super) fn human(spec: &TaskSpec<'_>) -> Human {
    let risk = spec.authorship.delegation.risk.get();
    let live = spec.mode.get() == Some(Mode::Live);
    let grave = risk.and_then(|risk| risk.classification.get()).is_some_and(|class| class.needs_a_person());
    if !live && !grave {
        return Human::NotNeeded;
    }
    named_grant(spec).map_or(Human::Approval, |grant| Human::Grant(grant.to_owned()))
}

/// The grant that the sender names. It is looked up whether a yes is needed or not: what is logged under a person's grant
/// has to be covered by one.
pub(super) fn named_grant<'s>(spec: &'s TaskSpec<'_>) -> Option<&'s str> {
    let risk = spec.authorship.delegation.risk.get()?;
    risk.authorization_ref.get().map(|grant| grant.as_str())
}
