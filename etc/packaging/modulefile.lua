-- SPDX-License-Identifier: MIT
-- Lmod: module use FOLDER/share/modulefiles; module load lowbits. FOLDER is found from where this file lies,
-- share/modulefiles/lowbits/VERSION.lua, and so may be moved.
local version = myModuleVersion()
local root = myFileName():gsub("/share/modulefiles/.*$", "")

whatis("Name: lowbits")
whatis("Version: " .. version)
whatis("Description: keeps language-model training alive on a Slurm cluster")
help([[
lbctl daemon start, then lbctl submit: see man lbctl.
]])
conflict("lowbits")
-- man finds pages by PATH; a MANPATH of our own would hide all others
prepend_path("PATH", pathJoin(root, "bin"))
-- completions; where this was not set it had a meaning all the same
if (os.getenv("XDG_DATA_DIRS") or "") == "" then
	append_path("XDG_DATA_DIRS", "/usr/local/share:/usr/share")
end
prepend_path("XDG_DATA_DIRS", pathJoin(root, "share"))
