/** The smallest domain: tasks of a to-do list, and notifications of its user. It is there to try an agent and the rules out. */
import { once, readData, readDataJson } from '../data-files.ts';
import { type Domain, indexTools, readSplits, readTools } from '../domain.ts';
import { createKit, type Toolkit } from '../environment.ts';
import { type Method, method } from '../python/calls.ts';
import { PyError, valueError } from '../python/errors.ts';
import { str } from '../python/format.ts';
import * as kind from '../python/model.ts';
import { ModelType } from '../python/model.ts';
import { isEqual, lookUp } from '../python/operations.ts';
import { cloneValue, isDict, type Model, type PyValue } from '../python/values.ts';
import { readTasks } from '../tasks.ts';

interface TodoTask extends Model {
  task_id: string;
  title: string;
  description: string | null;
  status: PyValue;
}
interface TodoUser extends Model {
  user_id: string;
  name: string;
  tasks: string[];
}
interface TodoList extends Model {
  tasks: Map<string, TodoTask>;
  users: Map<string, TodoUser>;
}
interface Inbox extends Model {
  notifications: Map<string, Model & { status: string }>;
}

const STATUS = ['pending', 'completed'];
const task = new ModelType('Task', {
  task_id: kind.text,
  title: kind.text,
  description: kind.optional(kind.text),
  status: kind.literal(STATUS),
});
const user = new ModelType('User', { user_id: kind.text, name: kind.text, tasks: kind.listOf(kind.text) });
const list = new ModelType('MockDB', { tasks: kind.dictOf(task.read), users: kind.dictOf(user.read) }, 'forbid');
const notification = new ModelType(
  'Notification',
  {
    notification_id: kind.text,
    message: kind.text,
    status: kind.withDefault(kind.literal(['unread', 'read']), () => 'unread'),
    task_id: kind.optional(kind.text),
  },
  'forbid',
);
const inbox = new ModelType(
  'MockUserDB',
  { notifications: kind.withDefault(kind.dictOf(notification.read), () => new Map()) },
  'forbid',
);

function findTask({ tasks }: TodoList, id: PyValue): TodoTask {
  const found = lookUp(tasks, id);
  if (!found) throw valueError(`Task ${str(id)} not found`);
  return found;
}

function findUser({ users }: TodoList, id: PyValue): TodoUser {
  const found = lookUp(users, id);
  if (!found) throw valueError(`User ${str(id)} not found`);
  return found;
}

/** Notifications of the user's database, which is the agent's one where a task changed that (`open`). */
function notificationsOf(db: Inbox | TodoList): Inbox['notifications'] {
  if ('notifications' in db) return db.notifications;
  throw new PyError('AttributeError', "'MockDB' object has no attribute 'notifications'");
}

function findNotification(db: Inbox | TodoList, id: PyValue) {
  const found = lookUp(notificationsOf(db), id);
  if (!found) throw valueError(`Notification ${str(id)} not found`);
  return found;
}

const agentMethods: Readonly<Record<string, Method<TodoList>>> = {
  create_task: method(
    'user_id title description',
    (db, userId, title, description) => {
      const owner = findUser(db, userId!);
      const id = `task_${db.tasks.size + 1}`;
      const created = task.of<TodoTask>({ task_id: id, title: title!, description: description!, status: 'pending' });
      db.tasks.set(id, created);
      owner.tasks.push(id);
      return created;
    },
    { description: null },
  ),
  get_users: method('', ({ users }) => [...users.values()]),
  update_task_status: method('task_id status', (db, id, status) => {
    const found = findTask(db, id!);
    found.status = status!;
    return found;
  }),
  transfer_to_human_agents: method('summary', () => 'Transfer successful'),
  assert_number_of_tasks: method('user_id expected_number', (db, id, expected) => {
    return isEqual(BigInt(findUser(db, id!).tasks.length), expected!);
  }),
  assert_task_status: method('task_id expected_status', (db, id, expected) => {
    return isEqual(findTask(db, id!).status, expected!);
  }),
};

const userMethods: Readonly<Record<string, Method<Inbox | TodoList>>> = {
  check_notifications: method('', (db) => [...notificationsOf(db).values()]),
  dismiss_notification: method('notification_id', (db, id) => {
    findNotification(db, id!).status = 'read';
    return `Notification ${str(id!)} dismissed`;
  }),
  add_notification: method(
    'notification_id message task_id',
    (db, id, message, taskId) => {
      const added = notification.of<Model & { status: string }>({
        notification_id: id!,
        message: message!,
        task_id: taskId!,
      });
      notificationsOf(db).set(id as string, added);
      return added;
    },
    { task_id: null },
  ),
  assert_notification_status: method('notification_id expected_status', (db, id, expected) => {
    return isEqual(findNotification(db, id!).status, expected!);
  }),
};

const starts = once(() => ({ agent: readDataJson('mock/db.json'), user: readDataJson('mock/user_db.json') }));
const agentTools = once(() => readTools('mock', 'assistant'));
const userTools = once(() => readTools('mock', 'user'));
const agentKit = once((): Toolkit<TodoList> => {
  return { className: 'MockTools', tools: indexTools(agentTools()), methods: agentMethods };
});
const userKit = once((): Toolkit<Inbox | TodoList> => {
  return { className: 'MockUserTools', tools: indexTools(userTools()), methods: userMethods };
});

export const mock: Domain = {
  id: 'mock',
  hasSolo: true,
  policy: (isSolo) => readData(isSolo ? 'mock/policy_solo.md' : 'mock/policy.md'),
  tasks: once(() => readTasks(readDataJson('mock/tasks.json'))),
  splits: once(() => readSplits('mock/split_tasks.json')),
  tools: (side) => (side === 'user' ? userTools() : agentTools()),
  open(data) {
    const { agent: agentStart, user: userStart } = starts();
    const db = list.create<TodoList>(merge(agentStart, data?.agent));
    // New data of the agent's side becomes the database of both sides: a fault of the original that its recordings show.
    const userDb = data?.agent ? db : inbox.create<Inbox>(merge(userStart, data?.user));
    return { agent: createKit(agentKit(), db, () => db), user: createKit(userKit(), userDb, () => userDb) };
  },
};

/** Copies a dictionary and puts the entries of another over it, at every level. */
function merge(base: PyValue, over: PyValue | undefined): PyValue {
  if (over === undefined) return cloneValue(base);
  if (!isDict(base) || !isDict(over)) return cloneValue(over);
  const merged = new Map(Array.from(base, ([key, one]) => [key, merge(one, over.get(key))] as const));
  for (const [key, one] of over) if (!merged.has(key)) merged.set(key, cloneValue(one));
  return merged;
}
