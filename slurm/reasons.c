/* SPDX-License-Identifier: MIT */
/* reasons.c - names as Slurm prints them, and a sentence for each.
 *
 * Most of the two hundred are limits of accounting, whose names are made of parts:
 * QOSMaxGRESPerUser. Those sentences are made of the same parts; the rest is a table. */
#include "slurm/reasons.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

/* By Slurm's number for it, the same in every release; numbers of what is gone for long (front end
 * nodes, Blue Gene) mean something else since 23.02 and 25.11. */
/* clang-format off */
static const char *const names[] = {
	"", "Priority", "Dependency", "Resources", "PartitionNodeLimit", "PartitionTimeLimit",
	"PartitionDown", "PartitionInactive", "JobHeldAdmin", "BeginTime", "Licenses",
	"AssociationJobLimit", "AssociationResourceLimit", "AssociationTimeLimit",
	"Reservation", "ReqNodeNotAvail", "JobHeldUser", "NvidiaImexChannels", "SchedDefer",
	"PartitionDown", "NodeDown", "BadConstraints", "SystemFailure", "JobLaunchFailure",
	"NonZeroExitCode", "TimeLimit", "InactiveLimit", "InvalidAccount", "InvalidQOS",
	"QOSUsageThreshold", "QOSJobLimit", "QOSResourceLimit", "QOSTimeLimit",
	"RaisedSignal", "BlockFreeAction", "Cleaning", "Prolog", "QOSNotAllowed",
	"AccountNotAllowed", "DependencyNeverSatisfied", "QOSGrpCpuLimit",
	"QOSGrpCPUMinutesLimit", "QOSGrpCPURunMinutesLimit", "QOSGrpJobsLimit",
	"QOSGrpMemLimit", "QOSGrpNodeLimit", "QOSGrpSubmitJobsLimit", "QOSGrpWallLimit",
	"QOSMaxCpuPerJobLimit", "QOSMaxCpuMinutesPerJobLimit", "QOSMaxNodePerJobLimit",
	"QOSMaxWallDurationPerJobLimit", "QOSMaxCpuPerUserLimit", "QOSMaxJobsPerUserLimit",
	"QOSMaxNodePerUserLimit", "QOSMaxSubmitJobPerUserLimit", "QOSMinCpuNotSatisfied",
	"AssocGrpCpuLimit", "AssocGrpCPUMinutesLimit", "AssocGrpCPURunMinutesLimit",
	"AssocGrpJobsLimit", "AssocGrpMemLimit", "AssocGrpNodeLimit",
	"AssocGrpSubmitJobsLimit", "AssocGrpWallLimit", "AssocMaxJobsLimit",
	"AssocMaxCpuPerJobLimit", "AssocMaxCpuMinutesPerJobLimit", "AssocMaxNodePerJobLimit",
	"AssocMaxWallDurationPerJobLimit", "AssocMaxSubmitJobLimit", "JobHoldMaxRequeue",
	"JobArrayTaskLimit", "BurstBufferResources", "BurstBufferStageIn",
	"BurstBufferOperation", "PowerNotAvail", "PowerReserved", "AssocGrpUnknown",
	"AssocGrpUnknownMinutes", "AssocGrpUnknownRunMinutes", "AssocMaxUnknownPerJob",
	"AssocMaxUnknownPerNode", "AssocMaxUnknownMinutesPerJob", "AssocMaxCpuPerNode",
	"AssocGrpMemMinutes", "AssocGrpMemRunMinutes", "AssocMaxMemPerJob",
	"AssocMaxMemPerNode", "AssocMaxMemMinutesPerJob", "AssocGrpNodeMinutes",
	"AssocGrpNodeRunMinutes", "AssocMaxNodeMinutesPerJob", "AssocGrpEnergy",
	"AssocGrpEnergyMinutes", "AssocGrpEnergyRunMinutes", "AssocMaxEnergyPerJob",
	"AssocMaxEnergyPerNode", "AssocMaxEnergyMinutesPerJob", "AssocGrpGRES",
	"AssocGrpGRESMinutes", "AssocGrpGRESRunMinutes", "AssocMaxGRESPerJob",
	"AssocMaxGRESPerNode", "AssocMaxGRESMinutesPerJob", "AssocGrpLicense",
	"AssocGrpLicenseMinutes", "AssocGrpLicenseRunMinutes", "AssocMaxLicensePerJob",
	"AssocMaxLicenseMinutesPerJob", "AssocGrpBB", "AssocGrpBBMinutes",
	"AssocGrpBBRunMinutes", "AssocMaxBBPerJob", "AssocMaxBBPerNode",
	"AssocMaxBBMinutesPerJob", "QOSGrpUnknown", "QOSGrpUnknownMinutes",
	"QOSGrpUnknownRunMinutes", "QOSMaxUnknownPerJob", "QOSMaxUnknownPerNode",
	"QOSMaxUnknownPerUser", "QOSMaxUnknownMinutesPerJob", "QOSMinUnknown",
	"QOSMaxCpuPerNode", "QOSGrpMemoryMinutes", "QOSGrpMemoryRunMinutes",
	"QOSMaxMemoryMinutesPerJob", "QOSMaxMemoryPerJob", "QOSMaxMemoryPerNode",
	"QOSMaxMemoryPerUser", "QOSMinMemory", "QOSGrpEnergy", "QOSGrpEnergyMinutes",
	"QOSGrpEnergyRunMinutes", "QOSMaxEnergyPerJob", "QOSMaxEnergyPerNode",
	"QOSMaxEnergyPerUser", "QOSMaxEnergyMinutesPerJob", "QOSMinEnergy",
	"QOSGrpNodeMinutes", "QOSGrpNodeRunMinutes", "QOSMaxNodeMinutesPerJob", "QOSMinNode",
	"QOSGrpGRES", "QOSGrpGRESMinutes", "QOSGrpGRESRunMinutes", "QOSMaxGRESPerJob",
	"QOSMaxGRESPerNode", "QOSMaxGRESPerUser", "QOSMaxGRESMinutesPerJob", "QOSMinGRES",
	"QOSGrpLicense", "QOSGrpLicenseMinutes", "QOSGrpLicenseRunMinutes",
	"QOSMaxLicensePerJob", "QOSMaxLicensePerUser", "QOSMaxLicenseMinutesPerJob",
	"QOSMinLicense", "QOSGrpBB", "QOSGrpBBMinutes", "QOSGrpBBRunMinutes", "QOSMaxBBPerJob",
	"QOSMaxBBPerNode", "QOSMaxBBPerUser", "AssocMaxBBMinutesPerJob", "QOSMinBB",
	"DeadLine", "MaxBBPerAccount", "MaxCpuPerAccount", "MaxEnergyPerAccount",
	"MaxGRESPerAccount", "MaxNodePerAccount", "MaxLicensePerAccount",
	"MaxMemoryPerAccount", "MaxUnknownPerAccount", "MaxJobsPerAccount",
	"MaxSubmitJobsPerAccount", "PartitionConfig", "AccountingPolicy", "FedJobLock",
	"OutOfMemory", "MaxMemPerLimit", "AssocGrpBilling", "AssocGrpBillingMinutes",
	"AssocGrpBillingRunMinutes", "AssocMaxBillingPerJob", "AssocMaxBillingPerNode",
	"AssocMaxBillingMinutesPerJob", "QOSGrpBilling", "QOSGrpBillingMinutes",
	"QOSGrpBillingRunMinutes", "QOSMaxBillingPerJob", "QOSMaxBillingPerNode",
	"QOSMaxBillingPerUser", "QOSMaxBillingMinutesPerJob", "MaxBillingPerAccount",
	"QOSMinBilling", "ReservationDeleted", "ReservationInvalid", "Constraints",
	"MaxBBRunMinsPerAccount", "MaxBillingRunMinsPerAccount", "MaxCpuRunMinsPerAccount",
	"MaxEnergyRunMinsPerAccount", "MaxGRESRunMinsPerAccount", "MaxNodeRunMinsPerAccount",
	"MaxLicenseRunMinsPerAccount", "MaxMemoryRunMinsPerAccount",
	"MaxUnknownRunMinsPerAccount", "MaxBBRunMinsPerUser", "MaxBillingRunMinsPerUser",
	"MaxCpuRunMinsPerUser", "MaxEnergyRunMinsPerUser", "MaxGRESRunMinsPerUser",
	"MaxNodeRunMinsPerUser", "MaxLicenseRunMinsPerUser", "MaxMemoryRunMinsPerUser",
	"MaxUnknownRunMinsPerUser", "MaxPoweredUpNodes", "MpiPortsBusy",
};
/* clang-format on */

/* clang-format off */
static const struct sentence {
	const char *name, *text;
} sentences[] = {
	{ "", "Slurm has not looked at it yet" },
	{ "None", "Slurm has not looked at it yet" },
	{ "Priority", "jobs with a higher priority are ahead of it" },
	{ "Resources", "what it asks for is not free yet; it is next in line" },
	{ "Dependency", "a job that it depends on has not ended yet" },
	{ "DependencyNeverSatisfied", "a job that it depends on has ended otherwise than it must: it will "
				      "never start" },
	{ "BeginTime", "it may not begin before its time (--begin, or Slurm's pause after a requeue)" },
	{ "JobHeldUser", "it is held by its owner; lbctl release lets it go" },
	{ "JobHeldAdmin", "an administrator holds it; only they can let it go" },
	{ "JobHoldMaxRequeue", "Slurm requeued it too often and holds it" },
	{ "JobArrayTaskLimit", "as many tasks of its array run as may run at once" },
	{ SLURM_REASON_SUSPENDED, "its job has its nodes and stands still: another one has them for now, or somebody "
				  "ran scontrol suspend" },
	{ SLURM_REASON_CONFIGURING, "it has its nodes, and they are being started or prepared" },
	{ "Licenses", "a license that it needs is in use" },
	{ "Reservation", "its reservation has not begun, or has no room for it" },
	{ "ReservationDeleted", "its reservation was deleted: it will never start" },
	{ "ReservationInvalid", "its reservation may not be used any more: it will not start as it is" },
	{ "ReqNodeNotAvail", "a node that it needs is down, drained or reserved" },
	{ "NodeDown", "a node that it needs is down" },
	{ "BadConstraints", "no nodes can ever be what it asks for" },
	{ "PartitionNodeLimit", "it asks for more nodes (or fewer) than its partition lets a job have: it "
				"will not start as it is" },
	{ "PartitionTimeLimit", "it asks for more time than its partition lets a job have: it will not "
				"start as it is" },
	{ "PartitionConfig", "its partition has no nodes that can be what it asks for: it will not start "
			     "as it is" },
	{ "PartitionDown", "its partition is down: administrators let nothing start there at present" },
	{ "PartitionInactive", "its partition is inactive: administrators let nothing start there at "
			       "present" },
	{ "MaxMemPerLimit", "it asks for more memory than a job may have: it will not start as it is" },
	{ "InvalidAccount", "its account may not be used" },
	{ "InvalidQOS", "its QOS may not be used" },
	{ "AccountNotAllowed", "its account may not use this partition" },
	{ "QOSNotAllowed", "its QOS may not be used in this partition or by this account" },
	{ "QOSUsageThreshold", "so much was used already that its QOS lets it wait" },
	{ "QOSJobLimit", "as many jobs of its QOS run as may run at once" },
	{ "QOSResourceLimit", "a limit of its QOS on resources" },
	{ "QOSTimeLimit", "a limit of its QOS on time" },
	{ "AssociationJobLimit", "as many jobs of its account run as may run at once" },
	{ "AssociationResourceLimit", "a limit of its account on resources" },
	{ "AssociationTimeLimit", "a limit of its account on time" },
	{ "AccountingPolicy", "a limit of accounting (account or QOS)" },
	{ "Cleaning", "its last try is still being cleared away" },
	{ "Prolog", "its nodes are being prepared" },
	{ "SchedDefer", "Slurm looks at new jobs later" },
	{ "BurstBufferResources", "the burst buffer has no room for it" },
	{ "BurstBufferStageIn", "its data is on the way into the burst buffer" },
	{ "BurstBufferOperation", "the burst buffer could not do what it asks for" },
	{ "PowerNotAvail", "there is not enough power" },
	{ "PowerReserved", "the power it needs is reserved" },
	{ "NvidiaImexChannels", "its GPUs need an IMEX channel, and none is free" },
	{ "MpiPortsBusy", "its nodes have no port left for MPI" },
	{ "MaxPoweredUpNodes", "as many nodes are switched on as may be" },
	{ "Constraints", "no nodes are at present what it asks for (--extra)" },
	{ "SystemFailure", "Slurm failed" },
	{ "JobLaunchFailure", "it could not be launched" },
	{ "NonZeroExitCode", "it ended with an exit status that says failure" },
	{ "TimeLimit", "it reached its time limit" },
	{ "InactiveLimit", "it did nothing for too long" },
	{ "DeadLine", "its deadline has passed" },
	{ "OutOfMemory", "it ran out of memory" },
	{ "RaisedSignal", "a signal ended it" },
	{ "BlockFreeAction", "its block is being freed" },
	{ "FedJobLock", "the federation has not decided where it runs" },
};
/* clang-format on */

const char *slurm_reason_name(uint32_t number)
{
	return number < sizeof(names) / sizeof(names[0]) ? names[number] : SLURM_REASON_UNKNOWN;
}

uint32_t slurm_reason_from_word(const char *word)
{
	for (uint32_t i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], word) == 0)
			return i;
	return 0;
}

uint32_t slurm_reason_told(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	static const struct {
		const char *begin, *end; /* NULL: any */
		const char *name;
	} sentences_of_slurm[] = {
		{ "Nodes required for job are DOWN", NULL, "Resources" },
		{ "Reservation ", " is invalid", "ReservationInvalid" },
		{ "Reservation ", NULL, "ReservationDeleted" },
		{ "launch failure limit exceeded", NULL, "JobHoldMaxRequeue" },
		{ "", " requeued held", "JobHeldUser" },
		{ "job requeued in ", NULL, "JobHeldUser" },
		{ "burst_buffer/", NULL, "BurstBufferOperation" },
		{ "Burst buffer ", NULL, "BurstBufferOperation" },
		{ "uid ", NULL, "InvalidAccount" }, /* "uid 7 not in group permitted to use …" */
	};
	char word[SLURM_REASON_TEXT_BYTES];
	uint32_t number, unknown = sizeof(names) / sizeof(names[0]);

	for (size_t i = 0; i < sizeof(sentences_of_slurm) / sizeof(sentences_of_slurm[0]); i++) {
		const char *end = sentences_of_slurm[i].end;

		if (text_begins_with(text, sentences_of_slurm[i].begin) &&
		    (!end || text_ends_with(text, end)))
			return slurm_reason_from_word(sentences_of_slurm[i].name);
	}
	snprintf(word, sizeof(word), "%.*s", (int)strspn(text, letters), text);
	number = slurm_reason_from_word(word);
	return number || !text[0] || strcmp(text, "None") == 0 ? number : unknown;
}

/* --- limits of accounting --------------------------------------------------------------------- */

struct part {
	const char *word, *text;
	const char *key; /* in scontrol's names of limits, or that of a TRES */
};

static const struct part scopes[] = {
	/* whose limit */
	{ "QOS", "its QOS", "" },       { "Association", "its account", "" },
	{ "Assoc", "its account", "" }, { "Max", "its QOS", "" },
	{ NULL, NULL, NULL },
};

static const struct part resources[] = {
	/* the longer first where one begins with another */
	{ "SubmitJobs", "jobs in the queue", "SubmitJobs" },
	{ "SubmitJob", "jobs in the queue", "SubmitJobs" },
	{ "Jobs", "running jobs", "Jobs" },
	{ "WallDuration", "time", "Wall" },
	{ "Wall", "time", "Wall" },
	{ "Cpu", "CPUs", "cpu" },
	{ "CPU", "CPUs", "cpu" },
	{ "Node", "nodes", "node" },
	{ "Memory", "memory", "mem" },
	{ "Mem", "memory", "mem" },
	{ "GRES", "GPUs or other GRES", "gres/" },
	{ "License", "seats of a license", "license/" },
	{ "Energy", "energy", "energy" },
	{ "BB", "burst buffer", "bb/" },
	{ "Billing", "billed units", "billing" },
	{ "Unknown", "some resource", NULL },
	{ NULL, NULL, NULL },
};

static const struct part shares[] = {
	/* for whom */
	{ "PerJob", " for one job: it will not start as it is", "PJ" },
	{ "PerNode", " for one node of a job: it will not start as it is", "PN" },
	{ "PerUser", " for one user; it waits until others of yours end", "PU" },
	{ "PerAccount", " for one account; it waits until others of the account end", "PA" },
	{ NULL, NULL, NULL },
};

static const struct part *take(const char **at, const struct part *parts)
{
	for (; parts->word; parts++) {
		size_t len = strlen(parts->word);

		if (strncmp(*at, parts->word, len) == 0) {
			*at += len;
			return parts;
		}
	}
	return NULL;
}

static bool take_word(const char **at, const char *word)
{
	const struct part parts[] = { { word, "", "" }, { NULL, NULL, NULL } };

	return take(at, parts) != NULL;
}

/* "QOSMaxGRESPerUser", "AssocGrpCPURunMinutesLimit", "MaxCpuPerAccount" … in its parts */
struct limit_name {
	const struct part *scope, *what, *share; /* share NULL: for all */
	bool is_group, is_min, is_run, is_minutes;
};

static bool read_limit(const char *name, struct limit_name *l)
{
	const char *at = name;
	bool is_max;

	*l = (struct limit_name){ .scope = take(&at, scopes) };
	if (l->scope == NULL)
		return false;
	is_max = strcmp(l->scope->word, "Max") == 0;
	l->is_group = !is_max && take_word(&at, "Grp");
	l->is_min = !is_max && !l->is_group && take_word(&at, "Min");
	if (!is_max && !l->is_group && !l->is_min && !take_word(&at, "Max"))
		return false;
	l->what = take(&at, resources);
	if (l->what == NULL)
		return false;
	l->is_run = take_word(&at, "Run");
	l->is_minutes = take_word(&at, "Minutes") || take_word(&at, "Mins");
	l->share = take(&at, shares);
	return true;
}

static bool limit_text(const char *name, char *out, size_t size)
{
	struct limit_name l;

	if (!read_limit(name, &l))
		return false;
	if (l.is_min)
		snprintf(out, size,
			 "it asks for fewer %s than %s wants of a job: it will not start as it is",
			 l.what->text, l.scope->text);
	else
		snprintf(out, size, "%s allows no more %s%s%s%s", l.scope->text, l.what->text,
			 l.is_run       ? " times minutes of running jobs"
			 : l.is_minutes ? " times minutes"
					: "",
			 l.is_group ? " for all its jobs together" : "",
			 l.share ? l.share->text : "");
	return true;
}

bool slurm_reason_limit(const char *reason, struct slurm_limit *out)
{
	struct limit_name l;
	bool is_tres, is_wall;

	if (!read_limit(reason, &l) || l.is_min || !l.what->key)
		return false;
	is_tres = l.what->key[0] >= 'a'; /* Jobs, SubmitJobs and Wall are limits of their own */
	is_wall = strcmp(l.what->key, "Wall") == 0;
	*out = (struct slurm_limit){
		.is_qos = l.scope->word[0] != 'A',
		.tres = is_tres ? l.what->key : NULL,
		.what = l.what->text,
		.is_minutes = l.is_minutes || is_wall,
	};
	snprintf(out->key, sizeof(out->key), "%s%s%s%s", l.is_group ? "Grp" : "Max",
		 is_tres ? "TRES" : l.what->key,
		 !l.is_minutes ? ""
		 : l.is_run    ? "RunMins"
			       : "Mins",
		 l.share ? l.share->key : "");
	return true;
}

bool slurm_reason_is_everywhere(const char *reason)
{
	static const char *const names_of_these[] = {
		"Dependency",         "DependencyNeverSatisfied",
		"BeginTime",          "JobHeldUser",
		"JobHeldAdmin",       "JobHoldMaxRequeue",
		"JobArrayTaskLimit",  "Licenses",
		"InvalidAccount",     "InvalidQOS",
		"QOSUsageThreshold",  "Cleaning",
		"FedJobLock",         "BurstBufferResources",
		"BurstBufferStageIn", "BurstBufferOperation"
	};

	for (size_t i = 0; i < sizeof(names_of_these) / sizeof(names_of_these[0]); i++)
		if (strcmp(names_of_these[i], reason) == 0)
			return true;
	return false;
}

void slurm_reason_text(const char *reason, char out[SLURM_REASON_TEXT_BYTES])
{
	size_t len = strcspn(reason, ":,"); /* what stands behind is what Slurm adds */

	for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++) {
		if (strlen(sentences[i].name) == len &&
		    memcmp(sentences[i].name, reason, len) == 0) {
			snprintf(out, SLURM_REASON_TEXT_BYTES, "%s", sentences[i].text);
			return;
		}
	}
	if (limit_text(reason, out, SLURM_REASON_TEXT_BYTES))
		return;
	if (strcmp(reason, SLURM_REASON_UNKNOWN) == 0)
		snprintf(out, SLURM_REASON_TEXT_BYTES,
			 "this Slurm has a reason that is newer than this "
			 "lbd; squeue -o '%%i %%r' names it");
	else
		snprintf(out, SLURM_REASON_TEXT_BYTES, "Slurm says %s", reason);
}
