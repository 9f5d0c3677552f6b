-- SPDX-License-Identifier: MIT
UPDATE attempts SET state = 'queued', released_ms = :released_ms WHERE id = :id AND state = 'held'
