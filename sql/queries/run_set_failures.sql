-- SPDX-License-Identifier: MIT
UPDATE runs SET failures = :failures, backoff_until_ms = :backoff_until_ms WHERE id = :id
