-- The journal by kind of event: a kind that is rare is found without reading all of it.
CREATE INDEX events_kind ON events (kind);
