-- Gateways that tell webhooks, each for as long as it says so again. The clock is the database's.
create table handoffd_tellers (
    -- One process; it has another name after every start.
    holder text primary key,
    -- The key of its gateway: what a process before it left is given up when it starts.
    gateway text not null,
    until timestamptz not null
);

-- Push configs, and how far telling has come. There are secrets in the documents until a config has ended.
-- INVARIANT (one teller): a config is told only by its holder, and has another one only when that is no teller any more.
create table handoffd_push (
    push_id text primary key,
    -- Configs are shown in the order in which they were set.
    number bigint generated always as identity,
    task_id text not null,
    owner text not null,
    config_id text not null,
    document text not null,
    delivered bigint not null,
    attempts bigint not null default 0,
    -- Why the last try failed, as JSON; null if it did not.
    retrying text,
    ended_at timestamptz,
    holder text,
    unique (task_id, owner, config_id)
);
create index handoffd_push_open on handoffd_push (holder) where ended_at is null;
create index handoffd_push_ended on handoffd_push (ended_at) where ended_at is not null;
