-- Which machine's notes an index is of, where nobody has given it a name: folders at the same place on two machines have
-- the same name, and seldom the same notes. NULL: not said yet, or the name was given.
ALTER TABLE {schema}.indexes ADD COLUMN keeper text;
