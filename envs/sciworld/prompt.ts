/** Instructions for language models that play SciWorld. Wording is ours; actions and format of an answer are AgentGym's. */
import type { WorldPrompt } from '../../src/core/prompt.ts';

export const prompt: WorldPrompt = {
  role: 'You work in a simulated house with laboratory equipment and carry out the science task you are given. You earn points for each step towards it; a wrong focus ends the task.',
  short:
    'Do the science task.\nActions: open, close, activate, deactivate, disconnect, use, read, look at, look in, examine, pick up, put down, eat, flush, mix, focus on A; use A on B; connect A to B; move A to B; pour A into B; dunk A into B; go to A; look around; inventory; task; wait1; wait\nA and B are things or places. Focus only on what the task names.',
  forms: [
    { name: 'open', template: 'open {object}', meaning: 'opens a container or door' },
    { name: 'close', template: 'close {object}', meaning: 'closes it' },
    { name: 'activate', template: 'activate {object}', meaning: 'switches a device on' },
    { name: 'deactivate', template: 'deactivate {object}', meaning: 'switches it off' },
    { name: 'connect', template: 'connect {one} to {other}', meaning: 'connects electrical components' },
    { name: 'disconnect', template: 'disconnect {object}', meaning: 'disconnects a component' },
    { name: 'use_on', template: 'use {tool} on {object}', meaning: 'uses a device on something' },
    { name: 'use', template: 'use {object}', meaning: 'uses a device' },
    { name: 'look_around', template: 'look around', meaning: 'describes the room' },
    { name: 'look_at', template: 'look at {object}', meaning: 'describes something in detail' },
    { name: 'look_in', template: 'look in {object}', meaning: 'lists what a container holds' },
    { name: 'read', template: 'read {object}', meaning: 'reads a note or book' },
    { name: 'move', template: 'move {object} to {place}', meaning: 'moves something into a container' },
    { name: 'pick_up', template: 'pick up {object}', meaning: 'takes something along' },
    { name: 'put_down', template: 'put down {object}', meaning: 'puts it down' },
    { name: 'pour', template: 'pour {liquid} into {container}', meaning: 'pours a liquid' },
    { name: 'dunk', template: 'dunk {object} into {liquid}', meaning: 'dips something into a liquid' },
    { name: 'mix', template: 'mix {container}', meaning: 'mixes what a container holds' },
    { name: 'go_to', template: 'go to {place}', meaning: 'walks to a neighbouring place' },
    { name: 'eat', template: 'eat {object}', meaning: 'eats something' },
    { name: 'flush', template: 'flush {object}', meaning: 'flushes a toilet' },
    { name: 'focus_on', template: 'focus on {object}', meaning: 'marks the object the task asks about' },
    { name: 'wait_one', template: 'wait1', meaning: 'lets one step pass' },
    { name: 'wait', template: 'wait', meaning: 'lets ten steps pass' },
    { name: 'examine', template: 'examine {object}', meaning: 'examines something' },
    { name: 'task', template: 'task', meaning: 'repeats the task' },
    { name: 'inventory', template: 'inventory', meaning: 'shows what you carry' },
  ],
  hints: ['Focus only on what the task names, and only when it asks for it.'],
  format: 'react',
};
