/** Instructions for language models that play BabyAI. Wording is ours; actions and format of an answer are AgentGym's. */
import type { WorldPrompt } from '../../src/core/prompt.ts';

export const prompt: WorldPrompt = {
  role: 'You walk through rooms of a grid world and fulfil the instruction given as your goal. Each message says what is in sight and where, and which actions are available.',
  short:
    'Fulfil the goal in a grid world.\nActions: turn left, turn right, move forward, go to <object>, pickup <object>, drop, toggle, go through <door>, toggle and go through <door>, check available actions\nObjects are named as in the last message, e.g. red ball 1.',
  forms: [
    { name: 'turn_left', template: 'turn left', meaning: 'turns left on the spot' },
    { name: 'turn_right', template: 'turn right', meaning: 'turns right on the spot' },
    { name: 'move_forward', template: 'move forward', meaning: 'one step ahead' },
    {
      name: 'toggle_and_go_through',
      template: 'toggle and go through {door}',
      meaning: 'opens a closed or locked door and walks through; a locked one needs the key of its colour in hand',
    },
    { name: 'go_through', template: 'go through {door}', meaning: 'walks through an open door' },
    { name: 'go_to', template: 'go to {object}', meaning: 'walks up to an object, e.g. go to red ball 1' },
    { name: 'pickup', template: 'pickup {object}', meaning: 'walks up to an object and picks it up' },
    { name: 'drop', template: 'drop', meaning: 'puts down what you carry' },
    { name: 'toggle', template: 'toggle', meaning: 'opens or closes the door right in front of you' },
    { name: 'check', template: 'check available actions', meaning: 'lists the actions' },
  ],
  hints: [
    'Objects are named by colour, kind and number, as in the last message.',
    'You can carry one object at a time.',
  ],
  format: 'react',
  foreign: /[^A-Za-z0-9, ]+/g,
};
