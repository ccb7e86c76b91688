return {number, accepted}
