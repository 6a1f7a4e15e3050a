-- Three tables with odd names, repeats, NULLs and ties, on which the conversion's cases stand.
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, country TEXT, "Home Town" TEXT);
CREATE TABLE "order" (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), total REAL, day TEXT);
CREATE TABLE item (order_id INTEGER REFERENCES "order" (id), name TEXT, quantity INTEGER);
INSERT INTO customer VALUES
  (1, 'Ann', 'Italy', 'Rome'), (2, 'Bob', 'Norway', 'Oslo'), (3, 'Cid', 'Italy', 'Bari'), (4, 'Dan', NULL, 'Rome'),
  (5, 'Ann', 'Spain', 'it''s'), (6, 'Eve', 'Italy', NULL);
INSERT INTO "order" VALUES
  (1, 1, 10, '2023-01-05'), (2, 1, 30, '2023-02-05'), (3, 2, 30, '2022-03-01'), (4, 3, 5, '2023-04-01'),
  (5, 5, 70, '2022-12-31'), (6, NULL, 8, '2023-06-01'), (7, 3, NULL, '2021-01-01');
INSERT INTO item VALUES
  (1, 'nail', 10), (1, 'saw', 1), (2, 'saw', 2), (3, 'nail', 50), (4, 'glue', 1), (5, 'saw', 1), (5, 'glue', NULL),
  (6, 'nail', 5);
