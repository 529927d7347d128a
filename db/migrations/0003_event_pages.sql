-- What happens to a large tree at once is thousands of events of one kind. They share rows: pk
-- is the number of the last, span how many there are, session_id their root, and data their
-- entities, each as what differs from the one before (store/page.go).
ALTER TABLE events ADD COLUMN span INTEGER NOT NULL DEFAULT 1;
