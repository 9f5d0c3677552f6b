-- SPDX-License-Identifier: MIT
UPDATE nodes SET score = :score, score_ms = :score_ms WHERE name = :name
