-- Entries that gateways remember and that the ledger no longer has: what each had, and where the ledger ended then.
create table handoffd_losses (
    gateway text not null,
    sequence bigint not null check (sequence > 0),
    running_hash bytea not null check (octet_length(running_hash) = 32),
    -- The ledger's time of that entry, where the gateway knows it.
    entry_time text,
    found_sequence bigint not null,
    noticed_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    primary key (gateway, sequence, running_hash)
);

-- The ledger's time up to which everything that is not in it was given up: when the epoch began that settled a loss.
alter table handoffd_ledger add column epoch_since text;
