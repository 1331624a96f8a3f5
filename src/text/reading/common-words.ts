/** Words with a token of their own under the default view: common in instructions, rooms, things, pages and refusals. */
const text = `
a about above across act action add after again against ago agent air all almost alone along already also always am among
an and another answer any are area around as ask at author away back bad bag ball bank bar base basic be became because
bed been before began begin behind being below beside best better between big black blue board body book both bottle
bottom bowl box bread bring broken brown build building but button buy by cabinet call can cannot card carry carrying
category cell center chair change check choose city clean clear click close closed cold color come complete computer
contain contains content continue cook cool copper correct could count country create cup current currently cut dark data
date day deep delete describe description desk did different dish do does done door down draw drawer drink drop each
early east easy eat edit egg either electric email empty end enough enter error even every examine example exit exists
eye face facing fact fail failed false family far fast field fill final find fire first five flat floor follow food foot
for form found four free fridge from front full game garden gate general get give given glass go goal gold good got great
green grey ground group grow hall hammer hand hard has have he head hear heat heavy held help her here high him his hit
hold hole home hot hour house how i ice if image in inch index information inside into inventory invalid iron is issue it
item items its jump just keep key kind kitchen know knife known label lake lamp land large last late lead leaf learn
leave left length less let letter level lies life light like line link liquid list little live living locked long look
lost lot low machine made main make man many map mark match may me mean measure meat menu message metal microwave middle
might milk mine minus mirror miss mix money more most mouse move much must my name near need never new next night no none
nor normal north not note nothing now number object objective of off office often oil old on once one only open opened or
orange order other our out outside oven over own page pan paper part pass path pay people person pick piece pink place
plain plant plate play please plus point pool position possible pot power press price print problem product project pull
purple push put question quick quit rain raise reach read ready red refuse remove repeat replace report request reset
result return right river road room round rule run said salt same save say screen search second section see seed seems
select sell send sentence set seven shape she sheet shelf shell shop short should show side sight sign silver sink site
six size sky sleep slow small so soap soft solid some something soon sort south space split square stand start state
status stay step sticky still stone stop store stove straight street string strong student study submit such sugar sun
switch table take target task tea tell temperature ten test text than that the their them then there these they thing
things think this those three through throw time title to today toggle together token too took tool top total touch toward
town tree true try turn turned two type under understand unit unknown until up upon use used useful user using valid value
version very via view visible visit wait walk wall want war warm was wash water way we wear week well went were west wet
what when where which white who whole whose why wide wild will wind window winter with within without wood word work world
would wrong year yellow yes yet you your zero
`;

/** Common words, in lower case; the tokenizer takes each once. */
export const COMMON_WORDS: readonly string[] = text.trim().split(/\s+/);
