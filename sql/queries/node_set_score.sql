-- SPDX-License-Identifier: MIT
UPDATE nodes SET score = :score, record = :record, score_ms = :score_ms WHERE name = :name
