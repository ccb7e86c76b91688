return {number, accepted, floor()}
