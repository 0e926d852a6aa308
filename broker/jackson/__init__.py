"""Read JSON as Jackson does, the parser of Pulsar's broker, and refuse other JSON with Jackson's texts.

Clients and people search for Java's texts, and a client of Java may send what only Java reads: a number as a
string, an enum by its index, a fraction where a whole number is meant. So the broker reads each value by the rules
of the Java type that Pulsar reads it into. A value of the wrong kind is refused with the text that Jackson's
exception has, and with the path to it (`through reference chain`). This module has all of these rules. Routes,
WebSockets, schemas and seeds only say which types their JSON has.

Reading has two steps, where Java has one. `parse` makes Python values of a text, or raises an error about the text.
A `Kind` makes the value of a Java type of them, or raises an error about the value. Jackson does both at once, and
stops at the first error. So where a text has both, its own error would come first here. `Call.read` looks at the
first token to tell them apart.

What all of Pulsar's readers share:

- A string is trimmed, except where a string is wanted. Only characters up to the space go, as in `String.trim`.
- For a number or a boolean, a blank string and "null" are null, and null is 0 or false for a primitive type.
- A string of digits is a number, in any script, with a sign or without. A fraction is cut off for a whole number.
- A number that does not fit is an error: of the parser for a number, of the type for a string.
- An enum is read by name, or by index, as number or as string. Pulsar reads an unknown name as null.
- A string may be written as a number or a boolean, and keeps the text of the number: 1e3 is "1e3".
- Names that a type does not have are ignored. Of repeated names, the last counts.

Where Java itself differs:

- REST parses bytes, a WebSocket and a schema parse characters. Jackson has a parser for each. They name the end of
  a string and the column of an unknown word differently, and only the one for bytes complains about UTF-8.
- REST allows nothing behind the value (`FAIL_ON_TRAILING_TOKENS`). A WebSocket ignores what follows. A schema of
  Avro has words of its own for it. Both want a space behind a number.
- A number out of range, or too long, that is the whole body of a REST call fails with 500. Inside an object it is a
  400.
- Key-value schemas over REST are read by Gson, and so are not read here. Nor are `skipByMessageIds` and the lab,
  whose words are the emulator's own.

Jackson names the place of a value in the text, by line and column. The places of errors about the text are right
here. An error about a value has the place 1, 1, because Python's values do not know theirs.
"""
