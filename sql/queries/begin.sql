-- SPDX-License-Identifier: MIT
BEGIN IMMEDIATE
