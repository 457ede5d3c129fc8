"""English sentences to measure a model on, without a network.

ALICE: 124 sentences, in the book's order, from Lewis Carroll, Alice's
Adventures in Wonderland, Macmillan 1865, which is in the public domain;
spelling after the electronic text "The Millennium Fulcrum Edition 2.9".
Each is a whole sentence of 8 to 30 words that ends with a full stop.
None has quotation marks, brackets, verse or emphasised words.
"""

import re

ALICE = tuple(
    " ".join(sentence.split())
    for sentence in re.split(
        r"\n(?! )",
        """\
In another moment down went Alice after it, never once considering how in the world
  she was to get out again.
There was nothing else to do, so Alice soon began talking again.
And she tried to fancy what the flame of a candle is like after the candle is blown
  out, for she could not remember ever having seen such a thing.
So she set to work, and very soon finished off the cake.
And she went on planning to herself how she would manage it.
But she went on all the same, shedding gallons of tears, until there was a large pool
  all round her, about four inches deep and reaching half down the hall.
After a time she heard a little pattering of feet in the distance, and she hastily
  dried her eyes to see what was coming.
And yesterday things went on just as usual.
And she began thinking over all the children she knew that were of the same age as
  herself, to see if she could have been changed for any of them.
As she said these words her foot slipped, and in another moment, splash! she was up to
  her chin in salt water.
However, she soon made out that she was in the pool of tears which she had wept when
  she was nine feet high.
The Mouse looked at her rather inquisitively, and seemed to her to wink with one of
  its little eyes, but it said nothing.
The Mouse gave a sudden leap out of the water, and seemed to quiver all over with
  fright.
For the Mouse was swimming away from her as hard as it could go, and making quite a
  commotion in the pool as it went.
Alice led the way, and the whole party swam to the shore.
They all sat down at once, in a large ring, with the Mouse in the middle.
Alice kept her eyes anxiously fixed on it, for she felt sure she would catch a bad
  cold if she did not get dry very soon.
And the Eaglet bent down its head to hide a smile: some of the other birds tittered
  audibly.
However, it was over at last, and they sat down again in a ring, and begged the Mouse
  to tell them something more.
This speech caused a remarkable sensation among the party.
On various pretexts they all moved off, and Alice was soon left alone.
And here poor Alice began to cry again, for she felt very lonely and low-spirited.
And Alice was so much frightened that she ran off at once in the direction it pointed
  to, without trying to explain the mistake it had made.
Then came a little pattering of feet on the stairs.
Alice noticed with some surprise that the pebbles were all turning into little cakes
  as they lay on the floor, and a bright idea came into her head.
So she swallowed one of the cakes, and was delighted to find that she began shrinking
  directly.
As soon as she was small enough to get through the door, she ran out of the house, and
  found quite a crowd of little animals and birds waiting outside.
The poor little Lizard, Bill, was in the middle, being held up by two guinea-pigs, who
  were giving it something out of a bottle.
They all made a rush at Alice the moment she appeared; but she ran off as hard as she
  could, and soon found herself safe in a thick wood.
An enormous puppy was looking down at her with large round eyes, and feebly stretching
  out one paw, trying to touch her.
This was not an encouraging opening for a conversation.
Which brought them back again to the beginning of the conversation.
This sounded promising, certainly: Alice turned and came back again.
Alice thought she might as well wait, as she had nothing else to do, and perhaps after
  all it might tell her something worth hearing.
Alice said nothing: she had never been so much contradicted in her life before, and
  she felt that she was losing her temper.
This time Alice waited patiently until it chose to speak again.
In a minute or two the Caterpillar took the hookah out of its mouth and yawned once or
  twice, and shook itself.
However, at last she stretched her arms round it as far as they would go, and broke
  off a bit of the edge with each hand.
She was moving them about as she spoke, but no result seemed to follow, except a
  little shaking among the distant green leaves.
Alice was more and more puzzled, but she thought there was no use in saying anything
  more till the Pigeon had finished.
As she said this, she came suddenly upon an open place, with a little house in it
  about four feet high.
So she began nibbling at the righthand bit again, and did not venture to go near the
  house till she had brought herself down to nine inches high.
She felt very curious to know what it was all about, and crept a little way out of the
  wood to listen.
Then they both bowed low, and their curls got entangled together.
Alice went timidly up to the door, and knocked.
He was looking up into the sky all the time he was speaking, and this Alice thought
  decidedly uncivil.
It was, no doubt: only Alice did not like to be told so.
The Footman seemed to think this a good opportunity for repeating his remark, with
  variations.
And she opened the door and went in.
There was certainly too much of it in the air.
Even the Duchess sneezed occasionally; and as for the baby, it was sneezing and
  howling alternately without a moment's pause.
The only things in the kitchen that did not sneeze, were the cook, and a large cat
  which was sitting on the hearth and grinning from ear to ear.
Alice did not at all like the tone of this remark, and thought it would be as well to
  introduce some other subject of conversation.
The cook threw a frying-pan after her as she went out, but it just missed her.
The baby grunted again, and Alice looked very anxiously into its face to see what was
  the matter with it.
So she set the little creature down, and felt quite relieved to see it trot away
  quietly into the wood.
The Cat only grinned when it saw Alice.
Alice felt that this could not be denied, so she tried another question.
Alice was not much surprised at this, she was getting so used to queer things
  happening.
While she was looking at the place where it had been, it suddenly appeared again.
As she said this, she looked up, and there was the Cat again, sitting on a branch of a
  tree.
Alice looked all round the table, but there was nothing on it but tea.
He had been looking at Alice for some time with great curiosity, and this was his
  first speech.
The Hatter was the first to break the silence.
Alice had been looking over his shoulder with some curiosity.
The Hatter's remark seemed to have no sort of meaning in it, and yet it was certainly
  English.
And they pinched it on both sides at once.
Alice did not quite know what to say to this: so she helped herself to some tea and
  bread-and-butter, and then turned to the Dormouse, and repeated her question.
He moved on as he spoke, and the Dormouse followed him: the March Hare moved into the
  Dormouse's place, and Alice rather unwillingly took the place of the March Hare.
This answer so confused poor Alice, that she let the Dormouse go on for some time
  without interrupting it.
Just as she said this, she noticed that one of the trees had a door leading right into
  it.
Once more she found herself in the long hall, and close to the little glass table.
A large rose-tree stood near the entrance of the garden: the roses growing on it were
  white, but there were three gardeners at it, busily painting them red.
Five and Seven said nothing, but looked at Two.
There was a sound of many footsteps, and Alice looked round, eager to see the Queen.
After these came the royal children; there were ten of them, and the little dears came
  jumping merrily along hand in hand, in couples: they were all ornamented with
  hearts.
So she stood still where she was, and waited.
She said it to the Knave of Hearts, who only bowed and smiled in reply.
The Knave did so, very carefully, with one foot.
The three soldiers wandered about for a minute or two, looking for them, and then
  quietly marched off after the others.
The soldiers were silent, and looked at Alice, as the question was evidently meant for
  her.
She was walking by the White Rabbit, who was peeping anxiously into her face.
Alice waited till the eyes appeared, and then nodded.
The Cat seemed to think that there was enough of it now in sight, and no more of it
  appeared.
The Queen had only one way of settling all difficulties, great or small.
Alice thought she might as well go back, and see how the game was going on, as she
  heard the Queen's voice in the distance, screaming with passion.
So she went in search of her hedgehog.
So she tucked it away under her arm, that it might not escape again, and went back for
  a little more conversation with her friend.
And the executioner went off like an arrow.
She had quite forgotten the Duchess by this time, and was a little startled when she
  heard her voice close to her ear.
And she squeezed herself up closer to Alice's side as she spoke.
However, she did not like to be rude, so she bore it as well as she could.
But she did not venture to say it out loud.
Alice looked up, and there stood the Queen in front of them, with her arms folded,
  frowning like a thunderstorm.
The Duchess took her choice, and was gone in a moment.
They very soon came upon a Gryphon, lying fast asleep in the sun.
The Gryphon sat up and rubbed its eyes: then it watched the Queen till she was out of
  sight: then it chuckled.
So they went up to the Mock Turtle, who looked at them with large eyes full of tears,
  but said nothing.
So they sat down, and nobody spoke for some minutes.
The Gryphon lifted up both its paws in surprise.
This was quite a new idea to Alice, and she thought it over a little before she made
  her next remark.
The Mock Turtle sighed deeply, and drew the back of one flapper across his eyes.
He looked at Alice, and tried to speak, but for a minute or two sobs choked his voice.
So they had to fall a long way.
So they got their tails fast in their mouths.
Alice looked down at them, and considered a little before she gave her answer.
Alice asked in a tone of great curiosity.
So Alice began telling them her adventures from the time when she first saw the White
  Rabbit.
He looked at the Gryphon as if he thought it had some kind of authority over Alice.
But there seemed to be no chance of this, so she began looking at everything about
  her, to pass away the time.
The twelve jurors were all writing very busily on slates.
One of the jurors had a pencil that squeaked.
This of course, Alice could not stand, and she went round the court and got behind
  him, and very soon found an opportunity of taking it away.
He came in with a teacup in one hand and a piece of bread-and-butter in the other.
The Hatter looked at the March Hare, who had followed him into the court, arm-in-arm
  with the Dormouse.
Here the Queen put on her spectacles, and began staring at the Hatter, who turned pale
  and fidgeted.
And he got up very sulkily and crossed over to the other side of the court.
The miserable Hatter dropped his teacup and bread-and-butter, and went down on one
  knee.
Here one of the guinea-pigs cheered, and was immediately suppressed by the officers of
  the court.
Here the other guinea-pig cheered, and was suppressed.
For some minutes the whole court was in confusion, getting the Dormouse turned out,
  and, by the time they had settled down again, the cook had disappeared.
The King turned pale, and shut his note-book hastily.
There was a general clapping of hands at this: it was the first really clever thing
  the King had said that day.
So Alice got up and ran off, thinking while she ran, as well she might, what a
  wonderful dream it had been.""",
    )
)
