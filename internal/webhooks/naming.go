package webhooks

import (
	"fmt"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// parseVMNamingTemplate says whether a template of VM names can be read. It knows Sprig's functions but for those whose answer
// depends on something else than their arguments (environment, time, chance): the name of a VM must come out the same each time.
func parseVMNamingTemplate(text string) error {
	if _, err := template.New("vmNamingTemplate").Option("missingkey=error").Funcs(sprig.HermeticTxtFuncMap()).Parse(text); err != nil {
		return fmt.Errorf("must be a Go template with functions of Sprig that always give the same answer: %w", err)
	}
	return nil
}
