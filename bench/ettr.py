# SPDX-License-Identifier: MIT
"""ettr.py [MONTHS] - the share of a month that a job of 64 nodes spends on steps that it keeps
(effective training time ratio), under lbd, `sbatch --requeue` and an `--array=1-N%1` chain.

A model, not a measurement: each month draws one list of faults from a seed, and all three go through
the same list. Failure rates are published ones:

  Llama 3     419 unexpected interruptions, 54 days, 2,048 nodes      0.0038 a node and day
  Meta RSC    mean time to failure 7.9 h at 128 nodes                 0.0237 a node and day

What is assumed of the world, for all alike:
  - 72 nodes, of which the job holds 64. Three of the 72 have half of all failures (Lablup found that
    three nodes made up more than half of all exclusions), and nobody repairs them in this month.
  - Of 100 failures 55 end the trainer at once (a GPU error, a crash); 15 make it hang; 20 take the
    whole node away for 4 hours; 10 are the trainer's own and know no node.
  - A checkpoint each 30 min costs no time. From a start to the first new step 5 min pass (load,
    compile, restore). There is always room in the queue; Slurm starts a waiting job within 30 s.
  - Jobs have no time limit: all three pass limits without loss where they are well set up.
What is assumed of each:
  lbd              a crash is relaunched in place after 1 s; a hang is noticed by lbrun 60 s after the
                   step time is known (5 x median, at least 60 s); a lost node by Slurm (SlurmdTimeout,
                   300 s) or by the silence of the others (60 s), whichever is first, and by lbd's
                   poll up to 30 s later; a lost node takes a new job. Nodes are blamed and avoided
                   as by default, which comes to little here: a failure of 64 nodes is shared among
                   them, since nobody says which one it was.
  sbatch --requeue its script requeues itself after a crash, which Slurm lets begin after 2 min
                   (cred_expire); hangs end by NCCL's watchdog after 10 min, lost nodes by NODE_FAIL
                   after 300 s. The same nodes are given again unless they are down.
  array chain      the same, but the next task begins at once.

The differences are those of noticing and of starting again; most of what is lost, the work since the
last checkpoint and the start-up, is the same for all. Peers whose hangs no watchdog ends (NCCL's is
off in many set-ups), or whose scripts do not requeue themselves, lose hours to each."""
import random
import statistics
import sys

DAY = 86400.0
MONTH = 30 * DAY
NODES, HELD, LEMONS = 72, 64, 3
CHECKPOINT, START, SCHEDULE = 1800.0, 300.0, 30.0
REPAIR = 4 * 3600.0
KINDS = (("crash", 55), ("hang", 15), ("lost", 20), ("own", 10))
RATES = (("Llama 3 rate", 419 / (54 * 2048)), ("Meta RSC rate", 24 / 7.9 / 128))


def month(rate, seed):
    """(when, node, kind), in order. Nodes 0 to LEMONS - 1 have half of the failures."""
    dice = random.Random(seed)
    kinds, weights = zip(*KINDS)
    faults, now = [], 0.0
    while True:
        now += dice.expovariate(rate * NODES / DAY)
        if now >= MONTH:
            return faults
        node = dice.randrange(LEMONS) if dice.random() < 0.5 else dice.randrange(LEMONS, NODES)
        faults.append((now, node, dice.choices(kinds, weights)[0], dice.random()))


class Policy:
    """What happens between a fault and the next start; `held` are the nodes of the job."""
    crash, hang, lost = 0.0, 600.0, 300.0

    def __init__(self, dice):
        self.dice, self.down = dice, {}
        self.order = list(range(NODES))
        dice.shuffle(self.order)	# the order in which Slurm prefers nodes
        self.held = set(self.order[:HELD])

    def avoided(self, _now):
        return set()

    def blame(self, now, node, kind):
        pass

    def place(self, now):
        """A new job: the nodes that are up and not avoided, in Slurm's order."""
        avoid = self.avoided(now)
        up = [n for n in self.order if self.down.get(n, 0) <= now and n not in avoid]
        self.held = set(up[:HELD])

    def away(self, now, node, kind, _dice):
        """Seconds until the trainer is started again; places the job."""
        notice = {"crash": 0, "own": 0, "hang": self.hang, "lost": self.lost}[kind]
        if kind == "lost":
            self.down[node] = now + REPAIR
        self.blame(now + notice, node, kind)
        self.place(now + notice)
        return notice + self.again + SCHEDULE * self.dice.random()


class Requeue(Policy):
    again = 120.0


class Chain(Policy):
    again = 0.0


class Lbd(Policy):
    hang, again = 60.0, 1.0
    HALF_LIFE, THRESHOLD, MOST = DAY, 0.75, 4

    def __init__(self, dice):
        super().__init__(dice)
        self.score = {}

    def value(self, node, now):
        points, since = self.score.get(node, (0.0, now))
        return points * 0.5 ** ((now - since) / self.HALF_LIFE)

    def avoided(self, now):
        bad = [n for n in self.score if self.value(n, now) >= self.THRESHOLD]
        return set(sorted(bad, key=lambda n: -self.value(n, now))[:self.MOST])

    def blame(self, now, node, kind):
        points = {"lost": 1.0, "hang": 0.5, "crash": 0.5}.get(kind, 0.0) / HELD
        for held in self.held if points else ():
            self.score[held] = (self.value(held, now) + points, now)

    def away(self, now, node, kind, dice):
        if kind in ("crash", "own"):
            return 1.0		# in place: same nodes
        if kind == "hang":
            return self.hang + 1.0
        self.lost = 60.0 + 30.0 * dice
        return super().away(now, node, kind, dice)


def live(policy, faults):
    """Seconds of the month on steps that were kept."""
    kept, since = 0.0, START		# new steps come from `since` on
    for now, node, kind, dice in faults:
        is_hit = (kind == "own" or node in policy.held) and now > since - START
        if not is_hit:		# another node, or no trainer runs at present
            if kind == "lost":
                policy.down[node] = now + REPAIR
                if node in policy.held:
                    policy.place(now)
            continue
        kept += max(0.0, now - since) // CHECKPOINT * CHECKPOINT
        since = now + policy.away(now, node, kind, dice) + START
    return (kept + max(0.0, MONTH - since)) / MONTH


def main():
    months = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"ETTR of one job on {HELD} nodes, mean of {months} simulated months (worst of ten)")
    for name, rate in RATES:
        faults = [month(rate, seed) for seed in range(months)]
        print(f"  {name}: {rate * HELD * 30:.1f} failures a month")
        for what, policy in (("lbd", Lbd), ("sbatch --requeue", Requeue),
                             ("--array=1-N%1", Chain)):
            shares = sorted(live(policy(random.Random(seed)), list_) for seed, list_
                            in enumerate(faults))
            print(f"    {what:<18} {statistics.mean(shares) * 100:6.2f} %   "
                  f"({shares[months // 10] * 100:.2f} %)   lost "
                  f"{(1 - statistics.mean(shares)) * 30 * 24:6.1f} h")


main()
