-- One row: which ledger this is, and whether it may be appended to.
create table handoffd_ledger (
    only_one boolean primary key default true check (only_one),
    topic_id text not null,
    genesis bytea not null check (octet_length(genesis) = 32),
    -- Why nothing may be appended, as JSON; null while it is open.
    closed text,
    -- Written by whoever settles a commit of which the answer was lost.
    settled bigint not null default 0,
    -- Counts the changes of what is shared.
    revision bigint not null default 0
);

-- INVARIANT (one conditional append): a row goes in only where the row before it has the hash that it was built on.
create table handoffd_entries (
    sequence bigint primary key check (sequence > 0),
    consensus_timestamp text not null,
    running_hash bytea not null check (octet_length(running_hash) = 32),
    wire text not null,
    ends_batch boolean not null
);

-- Bodies stand before an entry, outside the chain, and go by age.
create table handoffd_bodies (
    sequence bigint not null,
    place integer not null,
    digest bytea not null check (octet_length(digest) = 32),
    body bytea not null,
    primary key (sequence, place)
) with (toast_tuple_target = 8160);
-- As they are, and beside their number while they fit into a page: compressing each on its way in took about a third of
-- the time of a large append.
alter table handoffd_bodies alter column body set storage external;

-- Signed checkpoints, the newest of each key.
create table handoffd_checkpoints (
    key_id text primary key,
    sequence bigint not null,
    document text not null
);

-- What replicas share beside the log.
create table handoffd_shared (
    kind text not null,
    name text not null,
    document text not null,
    revision bigint not null,
    primary key (kind, name)
);
