-- SPDX-License-Identifier: MIT
UPDATE attempts SET state = 'held', job_id = :job_id, submit_time = :submit_time
WHERE id = :id AND state = 'intent'
