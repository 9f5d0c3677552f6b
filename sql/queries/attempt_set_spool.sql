-- SPDX-License-Identifier: MIT
UPDATE attempts SET spool_offset = :spool_offset, spool_seq = :spool_seq WHERE id = :id
