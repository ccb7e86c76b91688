-- Answers the number, what was accepted, and the floor. Changes nothing.
--
-- Late, or once more: Changes nothing.

return {number, accepted, floor()}
