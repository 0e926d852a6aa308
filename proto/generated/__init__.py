# Written by scripts/generate from ../PulsarApi.proto and ../MLDataFormats.proto: change those, not these.
