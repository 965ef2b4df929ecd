-- The nonces of signed requests, each once, for some minutes. A crash of the server empties it: not worth a wait for its disk.
create unlogged table handoffd_nonces (
    mark bytea primary key check (octet_length(mark) = 16),
    spent_at timestamptz not null default clock_timestamp()
);
create index handoffd_nonces_spent on handoffd_nonces (spent_at);
