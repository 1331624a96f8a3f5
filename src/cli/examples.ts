/** Examples that `--help` shows, by command; each is parsed by a test. */
export const examples: Readonly<Record<string, readonly string[]>> = {
  train: [
    'train run.yaml',
    'train run.yaml --set learner.maxLag=0 --set stop.minutes=10',
    'train --resume runs/run',
    'train run.yaml --serial --name twice-the-same',
  ],
  sft: ['sft run.yaml --data runs/run --min-score 1', 'sft run.yaml --data expert.json --data runs/rollout'],
  dpo: ['dpo run.yaml --data runs/run --set policy.init=runs/run-sft'],
  eval: [
    'eval runs/run --split test',
    'eval runs/run --horizon 8,24 --greedy --json',
    'eval runs/eval-remote --resume',
  ],
  compare: ['compare runs/short runs/long', 'compare runs/short runs/long --plot curves.svg --json'],
  rollout: [
    'rollout --env ./my/env.mjs --base-url http://127.0.0.1:8000/v1 --model my-model --episodes 200',
    'rollout --policy runs/run --episodes 100',
    'rollout --resume runs/rollout',
  ],
  play: ['play ./my/env.mjs', 'play ./my/env.mjs --task 3 --horizon 10'],
  replay: ['replay runs/run', 'replay runs/run --check'],
  'replay-learner': ['replay-learner runs/run', 'replay-learner runs/run --json'],
  view: ['view runs/run', 'view runs/one runs/other', 'view runs/run --out report.html'],
  export: [
    'export runs/run --out episodes.json',
    'export runs/run --out turns.parquet --success',
    'export runs/run --to adapter --out adapter',
  ],
  envs: ['envs', 'envs --json'],
  'check-env': ['check-env ./my/env.mjs', 'check-env ./my/env.mjs --option size=small --cases 200'],
  'new-env': ['new-env guess', 'new-env guess --dir worlds'],
  index: ['index corpus.jsonl', 'index corpus.jsonl.gz --out corpus.index --analyzer english'],
  'serve-env': ['serve-env ./my/env.mjs', 'serve-env ./my/env.mjs --port 0 --threads 2'],
  'serve-policy': ['serve-policy runs/run', 'serve-policy runs/run --port 8001 --name mine'],
  'serve-retriever': ['serve-retriever corpus.index --topk 5'],
  worker: [
    'worker nats://127.0.0.1:4222 --run run',
    'worker nats://127.0.0.1:4222 --run mine --slots 4 --env ./my/env.mjs',
    'worker nats://learner.lan:4222 --run run --creds worker.creds',
  ],
  cluster: [
    'cluster init --host learner.lan',
    'cluster status nats://127.0.0.1:4222',
    'cluster status nats://learner.lan:4222 --creds observer.creds --json',
  ],
  doctor: ['doctor', 'doctor --json', 'doctor --model /models/base --quantize int8'],
};
