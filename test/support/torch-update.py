"""One whole update, computed a second time: model, advantages, loss, gradients and AdamW in torch.float64.

Shares nothing with the TypeScript but the encoded episodes it reads from stdin. Every episode is a sequence of its own
(no packing, no shared prompts, no padding, no cache); advantages are forward sums. Numbers that the graph holds in
single precision (constants, rotary tables, what is fed of each decision) are rounded to it here too, so that the
comparison is between two float64 computations of the same thing.
"""
import json, math, sys
import numpy as np
import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
NEG = float('-inf')


def f32(x):
    return float(np.float32(x))


def f32_all(xs):
    return [f32(x) for x in xs]


class Model:
    def __init__(self, config, params):
        self.c = config
        self.p = params

    def linear(self, name, x, bias=False):
        y = x @ self.p[name + '.weight'].T
        return y + self.p[name + '.bias'] if bias else y

    def norm(self, x, name):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + f32(self.c['rmsNormEps'])) * self.p[name]

    def embed(self, ids, focus):
        table = self.p['model.embed_tokens.weight']
        x = table[ids]
        shift = self.p['token_shift.weight']
        for back in (1, 2):
            before = [0] * back + list(ids[:-back]) if len(ids) > back else [0] * len(ids)
            x = x + table[before] * shift[back - 1]
        bit = torch.tensor([[1.0 if i in focus else 0.0] for i in ids])
        return (x + bit * self.p['focus_embedding.weight']) * f32(self.c['embeddingScale'])

    def hidden(self, ids, focus, prompt):
        """[n, d] of a sequence whose first `prompt` tokens see each other both ways."""
        c, n = self.c, len(ids)
        dh = c['hiddenSize'] // c['heads']
        half = dh // 2
        angle = [[t * c['ropeTheta'] ** (-i / half) for i in range(half)] for t in range(n)]
        cos = torch.tensor([f32_all(map(math.cos, row)) for row in angle])
        sin = torch.tensor([f32_all(map(math.sin, row)) for row in angle])

        def rotate(x):
            a, b = x[..., :half], x[..., half:]
            return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

        allowed = torch.tril(torch.ones(n, n)).bool()
        allowed[:prompt, :prompt] = True
        x = self.embed(ids, focus)
        for layer in range(c['layers']):
            at = f'model.layers.{layer}.'
            h = self.norm(x, at + 'input_layernorm.weight')
            q, k, v = (
                self.linear(at + f'self_attn.{name}_proj', h).view(n, heads, dh).transpose(0, 1)
                for name, heads in (('q', c['heads']), ('k', c['kvHeads']), ('v', c['kvHeads']))
            )
            q, k = rotate(q), rotate(k)
            repeat = c['heads'] // c['kvHeads']
            k, v = k.repeat_interleave(repeat, 0), v.repeat_interleave(repeat, 0)
            scores = (q * f32(1 / math.sqrt(dh))) @ k.transpose(1, 2)
            mixed = torch.softmax(scores.masked_fill(~allowed, NEG), -1) @ v
            x = x + self.linear(at + 'self_attn.o_proj', mixed.transpose(0, 1).reshape(n, -1))
            h = self.norm(x, at + 'post_attention_layernorm.weight')
            gate, up = self.linear(at + 'mlp.gate_proj', h), self.linear(at + 'mlp.up_proj', h)
            x = x + self.linear(at + 'mlp.down_proj', torch.nn.functional.silu(gate) * up)
        return self.norm(x, 'model.norm.weight')

    def choices(self, h, hidden, action_ids, mentions, focus):
        """[C] scores of the candidate actions at one position."""
        d = self.c['hiddenSize']
        root = f32(1 / math.sqrt(d))
        bags = []
        for ids in action_ids:
            x = self.embed(ids, focus)
            x = x + self.linear('choice_head.bag_out', torch.nn.functional.silu(self.linear('choice_head.bag_in', x, True)))
            bags.append(x.sum(0) * f32(0.3))
        keys = self.linear('choice_head.pointer_key', hidden)
        bag_query = self.linear('choice_head.bag_query', h) * root
        pointer_query = self.linear('choice_head.pointer_query', h) * root
        return torch.stack(
            [bag @ bag_query + torch.logsumexp(keys[at] @ pointer_query, 0) for bag, at in zip(bags, mentions)]
        )

    def member(self, group, member):
        """log π, entropy and value of each of a member's decisions."""
        ids = group['prompt'] + member['tokens']
        P, focus = len(group['prompt']), set(group['focus'])
        hidden = self.hidden(ids, focus, P)
        out = []
        for dec in member['decisions']:
            h = hidden[P + dec['at']]
            if self.c['choiceHead']:
                logits = self.choices(h, hidden, group['actions'], group['mentions'], focus)
            else:
                logits = self.p['model.embed_tokens.weight'] @ h
            rows = dec['allowed']
            logp = torch.log_softmax(logits[rows], -1)
            value = (self.p['value_head.weight'] @ h + self.p['value_head.bias'])[0] if self.c['valueHead'] else None
            out.append((logp[rows.index(dec['chosen'])], -(logp.exp() * logp).sum(), value))
        return out

    def value_of(self, prompt, tokens, focus):
        hidden = self.hidden(prompt + tokens, set(focus), len(prompt))
        return (self.p['value_head.weight'] @ hidden[-1] + self.p['value_head.bias'])[0].item()


def k_estimate(kind, x):
    return {'k1': x, 'k2': 0.5 * x * x, 'k3': math.exp(-x) - 1 + x}[kind]


def advantages(groups, e, finals, penalties):
    """Per group and member: advantages, targets of the value head, and whether each turn is trained."""
    gamma = e['gamma']
    rows = []
    for g, group in enumerate(groups):
        row = []
        for m, member in enumerate(group['members']):
            r = [x - p for x, p in zip(member['rewards'], penalties[g][m])]
            T = len(r)
            cut = member['end'] == 'truncated'
            final = finals[g][m] if cut and e['truncation'] == 'bootstrap' else 0.0
            G = [sum(gamma ** (k - t) * r[k] for k in range(t, T)) + gamma ** (T - t) * final for t in range(T)]
            row.append(dict(r=r, G=G, final=final, cut=cut, member=member))
        rows.append(row)
    mean = lambda xs: sum(xs) / len(xs)

    def std(xs):
        m = mean(xs)
        return math.sqrt(sum((x - m) ** 2 for x in xs) / (len(xs) - 1))

    def relative(x, xs, with_std):
        if all(y == xs[0] for y in xs):
            return 0.0
        return (x - mean(xs)) / (std(xs) + 1e-6 if with_std else 1.0)

    algorithm = e['algorithm']
    for row in rows:
        totals = [one['G'][0] for one in row]
        for i, one in enumerate(row):
            T = len(one['G'])
            one['R'] = one['G']
            one['trained'] = [not (one['cut'] and e['truncation'] == 'mask')] * T
            if algorithm == 'ppo':
                v = f32_all(one['member']['values'])
                nxt = v[1:] + [one['final']]
                delta = [one['r'][t] + gamma * nxt[t] - v[t] for t in range(T)]
                one['A'] = [sum((gamma * e['lambda']) ** (k - t) * delta[k] for k in range(t, T)) for t in range(T)]
                one['R'] = [a + b for a, b in zip(one['A'], v)]
            elif algorithm == 'reinforce_pp':
                # The baseline is taken off the outcome, at the last decision, and discounted from there.
                seen = [sum(o['r']) + o['final'] for o in row if not (o['cut'] and e['truncation'] == 'mask')]
                base = mean(seen) if e['baseline'] == 'group' and seen else 0.0
                one['A'] = [x - gamma ** (T - 1 - t) * base for t, x in enumerate(one['G'])]
            elif algorithm == 'agent_evol':
                one['A'] = [1.0] * T
                one['trained'] = [totals[i] > e['threshold']] * T
            elif algorithm == 'gigpo':
                seen = one['member']['observations']
                sums = [sum(o['r']) + o['final'] for o in row]  # whole trajectories are compared undiscounted
                A = []
                for t in range(T):
                    same = [o['G'][k] for o in row for k in range(len(o['G'])) if o['member']['observations'][k] == seen[t]]
                    A.append(relative(sums[i], sums, e['std']) + e['stepWeight'] * relative(one['G'][t], same, e['std']))
                one['A'] = A
            else:
                A = []
                for t in range(T):
                    by_turn = [o['G'][t] if t < len(o['G']) else 0.0 for o in row]
                    xs = by_turn if e['credit'] == 'turn' else totals
                    if algorithm == 'rloo':
                        others = [x for j, x in enumerate(xs) if j != i]
                        A.append(0.0 if all(x == xs[0] for x in xs) else xs[i] - mean(others))
                    else:
                        A.append(relative(xs[i], xs, algorithm == 'grpo' and e['std']))
                one['A'] = A
    if algorithm == 'reinforce_pp' or (algorithm == 'ppo' and e['whiten']):
        flat = [a for row in rows for one in row for a, ok in zip(one['A'], one['trained']) if ok]
        m = mean(flat)
        s = math.sqrt(sum((x - m) ** 2 for x in flat) / len(flat))  # of the batch, not of a sample
        for row in rows:
            for one in row:
                one['A'] = [(a - m) / (s + 1e-8) for a in one['A']]
    return rows


def token_weight(rows, aggregation):
    lengths = [[sum(n for n, ok in zip(o['member']['lengths'], o['trained']) if ok) for o in row] for row in rows]
    flat = [n for row in lengths for n in row]
    count = sum(1 for n in flat if n > 0)

    def share(g, m):
        if aggregation['type'] == 'token-mean':
            return 1 / sum(flat)
        if aggregation['type'] == 'sequence-mean':
            return 1 / (count * lengths[g][m])
        return 1 / (count * aggregation['tokens'])

    return share


def adam(job, params, moments, loss, step):
    for p in params.values():
        p.grad = None
    loss.backward()
    o = job['optimizer']
    grads = {name: p.grad if p.grad is not None else torch.zeros_like(p) for name, p in params.items()}
    norm = math.sqrt(sum((g * g).sum().item() for g in grads.values()))
    shrink = min(1.0, f32(o['maxGradNorm']) / (norm + f32(1e-12)))
    correction1, correction2 = f32(1 - o['beta1'] ** step), f32(1 - o['beta2'] ** step)
    for name, p in params.items():
        g = grads[name] * shrink
        m, v = moments[name]
        m = m * f32(o['beta1']) + g * f32(1 - o['beta1'])
        v = v * f32(o['beta2']) + g * g * f32(1 - o['beta2'])
        moments[name] = (m, v)
        with torch.no_grad():
            w = p.clone()
            if o['weightDecay'] > 0 and job['decays'][name]:
                w = w - w * (f32(o['lr']) * f32(o['weightDecay']))
            w = w - m * (f32(o['lr']) / correction1) / (torch.sqrt(v / correction2) + f32(1e-8))
            p.copy_(w)
    return norm


def run(job):
    params = {name: torch.tensor(x['data']).reshape(x['shape']).requires_grad_() for name, x in job['params'].items()}
    moments = {name: (torch.zeros_like(p).detach(), torch.zeros_like(p).detach()) for name, p in params.items()}
    model = Model(job['model'], params)
    groups = job['groups']
    o = job['options']
    members = [(g, m) for g, group in enumerate(groups) for m in range(len(group['members']))]
    at = lambda g, m: groups[g]['members'][m]
    e = o['estimator']
    with torch.no_grad():
        finals = [
            [
                model.value_of(x['final']['prompt'], x['final']['tokens'], group['focus']) if x.get('final') else 0.0
                for x in group['members']
            ]
            for group in groups
        ]
        start = {(g, m): [lp.item() for lp, _, _ in model.member(groups[g], at(g, m))] for g, m in members}
        reference = start
        if job.get('reference'):
            theirs = Model(job['model'], {k: torch.tensor(x['data']).reshape(x['shape']) for k, x in job['reference'].items()})
            reference = {(g, m): [lp.item() for lp, _, _ in theirs.member(groups[g], at(g, m))] for g, m in members}
    kl = o.get('kl')
    penalties = [[[0.0] * len(x['rewards']) for x in group['members']] for group in groups]
    if kl and kl['in'] == 'reward':
        for g, m in members:
            for i, dec in enumerate(at(g, m)['decisions']):
                x = dec['logprob'] - reference[g, m][i]
                penalties[g][m][dec['turn']] += kl['coefficient'] * k_estimate(kl['estimator'], x)

    if o['objective'] == 'preference':
        return preference(job, model, params, moments, start)
    rows = advantages(groups, e, finals, penalties)
    share = token_weight(rows, e['aggregation'])
    values = sum(sum(1 for ok in one['trained'] if ok) for row in rows for one in row)
    results = []
    for step in range(1, o['epochs'] + 1):
        terms = []
        for g, m in members:
            one, member = rows[g][m], at(g, m)
            ratios = [a - d['logprob'] for a, d in zip(start[g, m], member['decisions'])]
            for i, (lp, entropy, value) in enumerate(model.member(groups[g], member)):
                dec = member['decisions'][i]
                t = dec['turn']
                if not one['trained'][t]:
                    continue
                old, weight, corrected = dec['logprob'], share(g, m), 1.0
                if o['truncated']:
                    alike = [r for r, d in zip(ratios, member['decisions']) if d['turn'] == t]
                    old, corrected = start[g, m][i], min(math.exp(sum(alike)), o['cap'])
                weight, A = f32(weight), f32(one['A'][t] * corrected)
                if o['objective'] == 'likelihood':
                    terms.append(-weight * lp)
                    continue
                ratio = torch.exp(lp - f32(old))
                clipped = torch.clamp(ratio, 1 - f32(o['clipLow']), 1 + f32(o['clipHigh']))
                surrogate = -torch.minimum(ratio * A, clipped * A)
                terms.append(weight * (surrogate - f32(o['entropyCoef']) * entropy))
                if kl and kl['in'] == 'loss':
                    x = lp - f32(reference[g, m][i])
                    k = {'k1': x, 'k2': 0.5 * x * x, 'k3': torch.exp(-x) - 1 + x}[kl['estimator']]
                    terms.append(weight * f32(kl['coefficient']) * k)
                if value is not None and dec['token'] == 0:
                    before, target = f32(dec['value']), f32(one['R'][t])
                    near = before + torch.clamp(value - before, -f32(o['valueClip']), f32(o['valueClip']))
                    worst = torch.maximum((value - target) ** 2, (near - target) ** 2)
                    terms.append(f32(o['valueCoef']) * 0.5 * f32(1 / values) * worst)
        loss = torch.stack(terms).sum()
        norm = adam(job, params, moments, loss, step)
        results.append(dict(loss=loss.item(), gradNorm=norm))
    return results, params, moments


def preference(job, model, params, moments, start):
    o = job['options']
    losses = []
    for g, group in enumerate(job['groups']):
        chosen, rejected = (sum(lp for lp, _, _ in model.member(group, m)) for m in group['members'])
        reference = f32(sum(start[g, 0]) - sum(start[g, 1]))
        losses.append(-torch.nn.functional.logsigmoid(f32(o['beta']) * (chosen - rejected - reference)))
    loss = torch.stack(losses).mean()
    norm = adam(job, params, moments, loss, 1)
    return [dict(loss=loss.item(), gradNorm=norm)], params, moments


results, params, moments = run(json.load(sys.stdin))
flat = lambda x: x.detach().reshape(-1).tolist()
json.dump(
    dict(
        steps=results,
        weights={k: flat(p) for k, p in params.items()},
        m={k: flat(m) for k, (m, _) in moments.items()},
        v={k: flat(v) for k, (_, v) in moments.items()},
        torch=torch.__version__,
    ),
    sys.stdout,
)
