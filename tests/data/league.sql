-- Two small tables that hand-worked cases stand on: 4 teams (one without a city), 5 players (one without age and team).
CREATE TABLE team (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE player (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, team_id INTEGER REFERENCES team(id));
INSERT INTO team VALUES (1, 'Lions', 'Rome'), (2, 'Bears', 'Oslo'), (3, 'Foxes', 'Rome'), (4, 'Owls', NULL);
INSERT INTO player VALUES
  (1, 'Ann', 20, 1), (2, 'Bob', 30, 1), (3, 'Cid', 25, 2), (4, 'Dan', 30, 3), (5, 'Eve', NULL, NULL);
