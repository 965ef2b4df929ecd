// A gateway with something on every page, and the list of all pages.

import { KEY } from './support.mjs';

/** Decisions of every kind, a live route with a handoff that waits, a grant, a freeze, mentions. */
export async function populate(gateway) {
  gateway.cli('key', 'add', '--owner', 'user:main', '--id', 'user-main-test');
  await gateway.goLive();
  await gateway.submit('parent_0001', (spec) => { spec.mode = 'simulated'; });
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
  await gateway.submitLive('live_0001');
  await gateway.api('POST', '/v1/authorizations', {
    principal: 'user:main', agents: ['blockchain-operator'], operations: ['transfer'], modes: ['simulated'],
    expiresAt: new Date(Date.now() + 3600_000).toISOString(), uses: 3,
  }, gateway.tokens.rita);
  await gateway.mention('mention_0001', '1473395000000000001');
  await gateway.mention('mention_0002', '1473395000000000002');
  await gateway.api('POST', '/v1/freeze', { scope: 'mode', mode: 'dev', reason: 'a drill' }, gateway.tokens.rita);
}

export function pages(key = KEY) {
  const route = encodeURIComponent(key);
  return [
    ['overview', '/console'],
    ['handoffs', '/console/handoffs'],
    ['handoffs-none', '/console/handoffs?agent=nobody'],
    ['handoff-refused', '/console/handoffs/hs_20260218_refused_0001'],
    ['handoff-done', '/console/handoffs/hs_20260218_walk_sim_1?verify=yes'],
    ['handoff-parent', '/console/handoffs/hs_20260218_parent_0001'],
    ['approvals', '/console/approvals'],
    ['approval', '/console/approvals/hs_20260218_live_0001'],
    ['approve', '/console/act/approve?id=hs_20260218_live_0001'],
    ['authorizations', '/console/authorizations'],
    ['grant', '/console/act/grant?principal=user%3Amain&agents=blockchain-operator&operations=transfer&modes=simulated&uses=2&minutes=60'],
    ['routes', '/console/routes'],
    ['route', `/console/routes/${route}`],
    ['rollback', `/console/act/rollback?key=${route}`],
    ['freezes', '/console/freezes'],
    ['freeze', '/console/act/freeze?scope=all'],
    ['mentions', '/console/mentions'],
    ['phase', '/console/act/phase?phase=gated-read'],
    ['audit', '/console/audit'],
    ['entry', '/console/audit/5'],
    ['verify', '/console/audit/verify'],
    ['policies', '/console/policies'],
    ['codes', '/console/codes?q=route'],
    ['not-found', '/console/nothing'],
  ];
}
