-- Products, the segments that share their stock, and the orders.
--
-- The constraints are the last line of defence (R4) and part of the interface: the program knows them by name.

CREATE TABLE products (
    id            integer GENERATED ALWAYS AS IDENTITY CONSTRAINT products_pkey PRIMARY KEY,
    sku           text COLLATE "C" NOT NULL CONSTRAINT products_sku_unique UNIQUE,
    name          text NOT NULL,
    segments      smallint NOT NULL CONSTRAINT products_segments_range CHECK (segments BETWEEN 1 AND 1024),
    max_per_order integer CONSTRAINT products_max_per_order_range CHECK (max_per_order >= 1),
    starts_at     timestamptz,
    ends_at       timestamptz,
    created_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT products_window_order CHECK (starts_at < ends_at)
);

-- A few hot rows, updated by every batch: the free room lets the new version of a row stay on its page (HOT).
CREATE TABLE segments (
    product_id integer NOT NULL REFERENCES products (id),
    index      smallint NOT NULL CONSTRAINT segments_index_range CHECK (index >= 0),
    allotted   bigint NOT NULL,
    taken      bigint NOT NULL DEFAULT 0,
    fence      bigint NOT NULL DEFAULT 0,
    epoch      bigint NOT NULL DEFAULT 0,
    CONSTRAINT segments_pkey PRIMARY KEY (product_id, index),
    CONSTRAINT segments_never_oversold CHECK (taken BETWEEN 0 AND allotted)
) WITH (fillfactor = 50);

-- No foreign key to segments: the one statement that writes orders locks the segment's row anyway.
-- created_at is part of the id (UUIDv7). customer_key is the order's name within its customer: 16 bytes whose head is
-- a digest of the customer, so that one index refuses a repeated request and finds a customer's orders.
CREATE TABLE orders (
    id           uuid CONSTRAINT orders_pkey PRIMARY KEY,
    customer_key uuid NOT NULL CONSTRAINT orders_one_per_key UNIQUE,
    product_id   integer NOT NULL,
    quantity     integer NOT NULL CONSTRAINT orders_quantity_range CHECK (quantity >= 1),
    segment      smallint NOT NULL,
    status       smallint NOT NULL CONSTRAINT orders_status_range CHECK (status BETWEEN 0 AND 3),
    customer_id  text NOT NULL
);

CREATE INDEX orders_by_product ON orders (product_id, id);

-- Holds only: empty as long as nothing is reserved.
CREATE INDEX orders_reserved ON orders (product_id) WHERE status = 0;
