-- Products, the segments that share their stock, and the orders: the same rules as in migrations/postgres.
-- Times are microseconds since 1970-01-01 UTC.

CREATE TABLE products (
    id            INTEGER PRIMARY KEY,
    sku           TEXT NOT NULL UNIQUE,
    name          TEXT NOT NULL,
    segments      INTEGER NOT NULL CHECK (segments BETWEEN 1 AND 1024),
    max_per_order INTEGER CHECK (max_per_order >= 1),
    starts_at     INTEGER,
    ends_at       INTEGER,
    created_at    INTEGER NOT NULL,
    CHECK (starts_at < ends_at)
) STRICT;

CREATE TABLE segments (
    product_id INTEGER NOT NULL REFERENCES products (id),
    "index"    INTEGER NOT NULL CHECK ("index" >= 0),
    allotted   INTEGER NOT NULL,
    taken      INTEGER NOT NULL DEFAULT 0,
    fence      INTEGER NOT NULL DEFAULT 0,
    epoch      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (product_id, "index"),
    CONSTRAINT segments_never_oversold CHECK (taken BETWEEN 0 AND allotted)
) STRICT, WITHOUT ROWID;

CREATE TABLE orders (
    id           BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    customer_key BLOB NOT NULL CONSTRAINT orders_one_per_key UNIQUE CHECK (length(customer_key) = 16),
    product_id   INTEGER NOT NULL,
    quantity     INTEGER NOT NULL CHECK (quantity >= 1),
    segment      INTEGER NOT NULL,
    status       INTEGER NOT NULL CHECK (status BETWEEN 0 AND 3),
    customer_id  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX orders_by_product ON orders (product_id, id);

CREATE INDEX orders_reserved ON orders (product_id) WHERE status = 0;
