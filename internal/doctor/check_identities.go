// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
)

// checkIdentities logs in with the identities beside that of the cluster.
func checkIdentities(ctx context.Context, logins []Login) findings {
	var f findings
	for _, login := range logins {
		name := fmt.Sprintf("%s %s", login.Ref.Kind, login.Ref.Name)
		_, err := login.Open(ctx)
		switch {
		case errors.Is(err, ErrUnknown):
			f.fact("%s, for %s: %v", name, login.User, err)
		case err != nil:
			f.problem("correct the Secret of the identity, or name another identity",
				"%s, which %s logs in with, cannot be used: %v", name, login.User, err)
		default:
			f.fact("%s logs in, for %s", name, login.User)
		}
	}
	return f
}
