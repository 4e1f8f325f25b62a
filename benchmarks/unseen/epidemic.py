"""Agent-based epidemic: households, workplaces, random meetings, hospital beds, contact tracing, vaccination and lockdown. N: agents."""

import numpy
import numpy as np

DEFAULT = 80000
DAYS, SHIFTS = 120, 8
S, E, I, H, R, D = range(6)


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(2020)
    sizes = rng.choice([1, 2, 3, 4, 5], N, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    house = numpy.repeat(numpy.arange(N), sizes)[:N]
    age = rng.integers(0, 90, N)
    work = numpy.where((age >= 18) & (age < 67), (rng.pareto(1.5, N) * 40).astype(int) % max(N // 30, 1), -1)
    return dict(house=house, age=age, work=work, chance=rng.random((DAYS, N), dtype=numpy.float32), luck=rng.random((SHIFTS, N)),
                period=rng.gamma(5, 1.0, N).clip(1, 14), infectious=rng.gamma(8, 1.0, N).clip(3, 20), sociable=rng.gamma(2, 1.5, N), first=rng.choice(N, 40, replace=False))


def pressure(infected, place, places, strength, size):
    """Hazard from the infected share of a place, for each of its people; -1 is nowhere."""
    there = place >= 0
    sick = np.bincount(place[infected & there], minlength=places)
    share = sick / np.maximum(size, 1)
    hazard = np.zeros(len(place))
    hazard[there] = strength * share[place[there]]
    return hazard


def main(asarray, N=DEFAULT, data=None, beta=0.09, tracing=0.4, beds=0.002):
    data = data or inputs(N)
    house, age, work, chance, luck, period, infectious, sociable, first = (asarray(data[k]) for k in
        ("house", "age", "work", "chance", "luck", "period", "infectious", "sociable", "first"))
    houses, places = int(house.max()) + 1, int(work.max()) + 1
    house_size, work_size = np.bincount(house, minlength=houses), np.bincount(work[work >= 0], minlength=places)
    state = np.full(N, S, dtype=np.int8)
    timer = np.zeros(N)
    quarantine = np.zeros(N, dtype=np.int32)
    immunity = np.zeros(N)
    day_infected = np.full(N, -1)
    state[first] = I
    timer[first] = infectious[first]
    day_infected[first] = 0
    risk = np.where(age < 40, 0.01, np.where(age < 65, 0.05, 0.2))
    death = np.where(age < 65, 0.05, 0.25)
    queue = np.argsort(-age * 100000 - np.arange(N) % 1000, kind="stable")         # the oldest first
    capacity, served = int(beds * N), 0
    lockdown, locked_days, history, reproduction = False, 0, [], []
    for day in range(DAYS):
        u = chance[day]
        v = np.roll(luck[day % SHIFTS], day * 37)
        active = (state == I) & (quarantine == 0)
        mobile = quarantine == 0
        hazard = pressure(state == I, house, houses, 6 * beta, house_size)
        if day % 7 < 5 and not lockdown:
            hazard += np.where(mobile, pressure(active, work, places, 4 * beta, work_size), 0)
        # random meetings: everyone active meets some others
        sources = np.flatnonzero(active)
        met = np.zeros(N, dtype=bool)
        if sources.size:
            meetings = (sociable[sources] * (0.3 if lockdown else 1.0) + v[sources]).astype(int)
            who = np.searchsorted(np.cumsum(meetings), np.arange(int(meetings.sum())), side="right")
            partner = (v[sources[who]] * 7919 * (who + 1) + u[sources[who]] * N).astype(int) % N
            passes = (v[partner] < beta * 1.5) & (state[partner] == S) & mobile[partner]
            met[partner[passes]] = True
            hazard[partner] += 0.2 * beta
        probability = (1 - np.exp(-hazard)) * (1 - immunity)
        new = (state == S) & ((u < probability) | (met & (u < 1 - immunity)))
        timer[state != S] -= 1
        done = (timer <= 0) & (state != S)
        to_sick, leaving, discharged = done & (state == E), done & (state == I), done & (state == H)
        state[new] = E
        timer[new] = period[new]
        day_infected[new] = day
        state[to_sick] = I
        timer[to_sick] = infectious[to_sick]
        severe = leaving & (v < risk * (1 - 0.9 * immunity))
        free = capacity - int((state == H).sum())
        waiting = np.flatnonzero(severe)
        waiting = waiting[np.argsort(age[waiting], kind="stable")]
        admitted, refused = waiting[:max(free, 0)], waiting[max(free, 0):]
        state[leaving] = R
        state[admitted] = H
        timer[admitted] = 8
        state[refused[u[refused] < 0.5]] = D
        dies = discharged & (u < death)
        state[discharged] = R
        state[dies] = D
        immunity[state == R] = 0.95
        # tracing: cases found send their household home for ten days
        found = to_sick & (v < tracing)
        flagged = np.zeros(houses, dtype=bool)
        flagged[house[found]] = True
        quarantine = np.maximum(quarantine - 1, 0)
        quarantine[flagged[house]] = 10
        if day >= 30 and served < N:
            dose = queue[served:served + N // 200]
            dose = dose[state[dose] == S]
            immunity[dose] = np.maximum(immunity[dose], 0.8)
            served += N // 200
        counts = np.bincount(state, minlength=6)
        prevalence = float(counts[I]) / N
        lockdown = prevalence > (0.008 if lockdown else 0.03)
        locked_days += lockdown
        history.append(counts)
        reproduction.append(int(new.sum()) / max(float(counts[I]), 1.0) * 8)
        if int(counts[E] + counts[I] + counts[H]) == 0:
            break
    ever = day_infected >= 0
    groups = np.minimum(age // 10, 8)
    attack = np.bincount(groups[ever], minlength=9) / np.bincount(groups, minlength=9)
    deaths = np.bincount(groups[state == D], minlength=9)
    secondary = np.bincount(np.bincount(house[ever], minlength=houses), minlength=6)
    curve = np.bincount(day_infected[ever], minlength=DAYS)
    weekly = np.convolve(curve.astype(float), np.ones(7) / 7, mode="valid")
    return dict(history=np.asarray(np.stack(history)), state=np.asarray(state), reproduction=np.asarray(reproduction), attack=np.asarray(attack), deaths=np.asarray(deaths), secondary=np.asarray(secondary),
                weekly=np.asarray(weekly), peak=np.asarray(int(weekly.argmax())), locked=np.asarray(int(locked_days)), quarantined=np.asarray(int((quarantine > 0).sum())))
