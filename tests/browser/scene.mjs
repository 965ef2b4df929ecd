// A gateway with something on every page, and the list of all pages.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KEY } from './support.mjs';

/** Routes at every stage: live in canary, simulated, in dev, blocked, frozen. */
export const ROUTES = {
  live: KEY,
  simulated: 'ledger-scribe.reporting.v1',
  dev: 'risk-desk.limits.v1',
  blocked: 'hyper-trader.execution-plane.v1',
  frozen: 'quote-runner.execution-plane.v1',
};

/** Decisions of every kind, routes at every stage, a handoff that waits, grants, a freeze, mentions. */
export async function populate(gateway) {
  gateway.cli('key', 'add', '--owner', 'user:main', '--id', 'user-main-test');
  gateway.editRoutes((route, routes) => {
    const plain = { capability: route.capability, profile: route.profile, rollbackPlanRef: route.rollbackPlanRef, requireSignature: false };
    routes[ROUTES.simulated] = { ...plain, primaryAgentId: 'ledger-scribe', stage: 'simulated', probeUrl: route.probeUrl };
    routes[ROUTES.dev] = { ...plain, primaryAgentId: 'risk-desk' };
    routes[ROUTES.blocked] = { ...plain, primaryAgentId: 'hyper-trader', approvers: 2, probeUrl: route.probeUrl };
    routes[ROUTES.frozen] = { ...plain, primaryAgentId: 'quote-runner' };
  });
  await gateway.api('POST', '/v1/reload');
  await gateway.goLive();
  const as = (name, { operation, input, summary, ...rest }) => gateway.submit(name, (spec) => {
    Object.assign(spec, { mode: 'simulated' }, rest);
    Object.assign(spec.intent, { operation, summary, input });
  });
  const swap = { chain: 'solana', inAsset: 'SOL', outAsset: 'USDC', amount: '0.25', slippageBps: 100 };
  await as('parent_0001', { operation: 'swap.jupiter', summary: 'Swap SOL to USDC within one percent of slippage', input: swap });
  await gateway.api('POST', '/v1/handoffs', gateway.spec('child_0001', (spec) => {
    spec.mode = 'simulated';
    spec.parentHandoffId = 'hs_20260218_parent_0001';
    spec.correlationId = 'corr_parent_0001';
    spec.source.agentId = 'crypto-sage';
  }));
  for (const n of [1, 2, 3]) await gateway.submit(`lost_000${n}`, (spec) => { spec.routing.routeKey = 'nowhere.execution-plane.v1'; });
  await gateway.submit('refused_0001', (spec) => {
    spec.safety.e2eActor = 'myself';
    spec.safety.allowExternalSideEffects = true;
    spec.intent.input = { chain: 'bitcoin', note: 'x'.repeat(400) };
    delete spec.rollback;
  });
  // Refused, mended, and handed in again under the same id.
  await gateway.submit('mended_0001', (spec) => { spec.safety.e2eActor = 'myself'; });
  await gateway.submit('mended_0001');
  const at = (key) => (spec) => { spec.routing.routeKey = key; spec.target.agentId = key.split('.')[0]; };
  await gateway.api('POST', `/v1/routes/${ROUTES.blocked}/block`, { reason: 'the venue is down' }, gateway.tokens.rita);
  await gateway.submit('blocked_0001', at(ROUTES.blocked));
  await gateway.submit('desk_0001', at(ROUTES.dev));
  await gateway.submitLive('live_0001');
  // Nobody would see what it says, if pages did not write it out.
  await gateway.submit('odd_0001', (spec) => {
    spec.mode = 'live';
    spec.safety.requiresHumanApproval = true;
    const to = [...'9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin'].reverse().join('');
    const input = { chain: 'solana', asset: 'US\u200bDC', amount: '100', to: `\u202e${to}\u202c` };
    Object.assign(spec.intent, { operation: 'transfer', summary: 'Pay the vendor\u202e000,1 \u202c  now\nas agreed', input });
  });
  await gateway.submit('failed_0001', (spec) => { spec.mode = 'simulated'; });
  await gateway.fail('failed_0001', { code: 'VENUE_REJECTED', message: 'the venue took the order and gave it back: no funds at the desk' });
  await gateway.submitLive('no_0001');
  await gateway.api('POST', '/v1/approvals/hs_20260218_no_0001', { decision: 'reject', reason: 'not before the audit on Friday' }, gateway.tokens.omar);
  const grant = (more) => gateway.api('POST', '/v1/authorizations', {
    principal: 'user:main', agents: ['blockchain-operator'], operations: ['transfer'], modes: ['simulated'],
    expiresAt: new Date(Date.now() + 3600_000).toISOString(), uses: 3, ...more,
  }, gateway.tokens.rita);
  await grant();
  const revoked = await grant({ operations: ['swap.jupiter', 'hyperliquid.order.place', 'hyperliquid.order.cancel'], modes: ['simulated', 'live'], uses: 20 });
  await gateway.api('DELETE', `/v1/authorizations/${revoked.body.authorizationRef}?reason=not%20needed`, undefined, gateway.tokens.rita);
  await gateway.mention('mention_0001', '1473395000000000001');
  await gateway.mention('mention_0002', '1473395000000000002');
  // Mentions of reads are allowed from here on; one whose envelope has run out is expired.
  await gateway.api('PUT', '/v1/mentions/phase', { phase: 'gated-read', reason: 'a week of candidates without a surprise' }, gateway.tokens.rita);
  await gateway.mention('expired_0001', '1473395000000000003', { signedAt: new Date(Date.now() - 3600_000) });
  await gateway.mention('mention_0004', '1473395000000000004');
  await gateway.api('POST', '/v1/mentions/1473395000000000002/false-positive', { reason: 'it was a joke' }, gateway.tokens.rita);
  await gateway.api('POST', '/v1/freeze', { scope: 'route', routeKey: ROUTES.frozen, reason: 'quotes are off by a decimal' }, gateway.tokens.rita);
  await gateway.submit('frozen_0001', at(ROUTES.frozen));
}

/** And then somebody saves a routing table that cannot be read. */
export async function trouble(gateway) {
  writeFileSync(join(gateway.workspace, 'policies/routes.json'), '{"routes": {"crypto-sage.execution-plane.v1": {"capability": 7}}}');
  await gateway.api('POST', '/v1/reload');
}

export function pages() {
  const route = encodeURIComponent(KEY);
  return [
    ['overview', '/console'],
    ['handoffs', '/console/handoffs'],
    ['handoffs-none', '/console/handoffs?agent=nobody'],
    ['handoffs-wrong', '/console/handoffs?decision=denied&agent=crypto-sage&from=2026-02-30'],
    ['handoff-refused', '/console/handoffs/hs_20260218_refused_0001'],
    ['handoff-expired', '/console/handoffs/hs_20260218_expired_0001'],
    ['handoff-waiting', '/console/handoffs/hs_20260218_live_0001'],
    ['handoff-mended', '/console/handoffs/hs_20260218_mended_0001'],
    ['handoff-done', '/console/handoffs/hs_20260218_walk_sim_1?verify=yes'],
    ['handoff-parent', '/console/handoffs/hs_20260218_parent_0001'],
    ['handoff-failed', '/console/handoffs/hs_20260218_failed_0001'],
    ['handoff-rejected', '/console/handoffs/hs_20260218_no_0001'],
    ['handoff-odd', '/console/handoffs/hs_20260218_odd_0001'],
    ['approvals', '/console/approvals'],
    ['approval-odd', '/console/approvals/hs_20260218_odd_0001'],
    ['approve-odd', '/console/act/approve?id=hs_20260218_odd_0001'],
    ['approval', '/console/approvals/hs_20260218_live_0001'],
    ['approve', '/console/act/approve?id=hs_20260218_live_0001'],
    ['reject', '/console/act/reject?id=hs_20260218_live_0001'],
    ['authorizations', '/console/authorizations'],
    ['grant', '/console/act/grant?principal=user%3Amain&agents=blockchain-operator&operations=transfer&modes=simulated&uses=2&minutes=60'],
    ['grant-refused', '/console/act/grant?principal=user%3Amain'],
    ['routes', '/console/routes'],
    ['route', `/console/routes/${route}`],
    ['route-simulated', `/console/routes/${ROUTES.simulated}`],
    ['route-dev', `/console/routes/${ROUTES.dev}`],
    ['route-blocked', `/console/routes/${ROUTES.blocked}`],
    ['route-frozen', `/console/routes/${ROUTES.frozen}`],
    ['gate', `/console/act/gate?key=${ROUTES.simulated}&gate=G1`],
    ['rollback', `/console/act/rollback?key=${route}`],
    ['block', `/console/act/block?key=${route}`],
    ['freezes', '/console/freezes'],
    ['freeze', '/console/act/freeze?scope=all'],
    ['mentions', '/console/mentions'],
    ['phase', '/console/act/phase?phase=gated-live'],
    ['false-positive', '/console/act/false-positive?message=1473395000000000001&handoff=hs_20260218_mention_0001'],
    ['audit', '/console/audit'],
    ['audit-none', '/console/audit?code=NOTHING'],
    ['audit-wrong', '/console/audit?type=gate.decided&from=yesterday&sequence=999999'],
    ['entry', '/console/audit/5'],
    ['verify', '/console/audit/verify'],
    ['policies', '/console/policies'],
    ['codes', '/console/codes?q=route'],
    ['codes-none', '/console/codes?q=nothing-of-the-kind'],
    ['not-found', '/console/nothing'],
  ];
}

/** Pages that say so when a policy set did not load. */
export const TROUBLED = [['trouble-overview', '/console'], ['trouble-policies', '/console/policies']];

/** A gateway where a changed policy set waits for an operator, and pages that say so. */
export const WAITING_SETTINGS = '[policy]\napproval = "operator"\n';
export const WAITING = [['waiting-overview', '/console'], ['waiting-policies', '/console/policies']];

export async function propose(gateway) {
  gateway.editRoutes((route, routes) => { routes['new-desk.limits.v1'] = { ...route, primaryAgentId: 'new-desk' }; });
  await gateway.api('POST', '/v1/reload');
}
