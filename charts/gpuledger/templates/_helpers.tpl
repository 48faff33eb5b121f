{{/* Only the name: labels with versions would restart pods for nothing, and Helm adds its own. */}}
{{- define "gpuledger.labels" -}}
app.kubernetes.io/name: gpuledger
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Several replicas need the Lease and all that goes with it. */}}
{{- define "gpuledger.several" -}}
{{- if gt (int .Values.replicas) 1 }}yes{{ end }}
{{- end }}

{{/* Whoever wakes pods, seals them or labels the holder patches pods. */}}
{{- define "gpuledger.patchesPods" -}}
{{- if or (ne (get .Values.config "wake" | toString) "false") .Values.seal.enabled (include "gpuledger.several" .) }}yes{{ end }}
{{- end }}

{{/* The port of an address such as 0.0.0.0:39999 or [::]:39999, or what is the default. */}}
{{- define "gpuledger.port" -}}
{{- $address := get .config .option | default (printf ":%d" .default) }}
{{- $address | splitList ":" | last | int }}
{{- end }}

{{/* One argument for each option. Numbers are no floats, which YAML makes of them on its way here. */}}
{{- define "gpuledger.args" -}}
- serve
{{- $config := deepCopy .Values.config }}
{{- if .Values.admission.enabled }}
{{- $config = set $config "admission" true }}
{{- end }}
{{- range $name, $value := $config }}
{{- if kindIs "bool" $value }}
- {{ printf "--%s%s" $name (ternary "" "=false" $value) }}
{{- else if kindIs "map" $value }}
- {{ printf "--%s=%s" $name (toJson $value) | quote }}
{{- else if kindIs "string" $value }}
- {{ printf "--%s=%s" $name $value | quote }}
{{- else if not (kindIs "invalid" $value) }}
- {{ printf "--%s=%d" $name (int64 $value) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gpuledger.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "gpuledger.scrape" -}}
port: ops
scheme: https
path: /metrics
honorLabels: true
authorization:
  type: Bearer
  credentials:
    name: {{ .Values.ops.secretName }}
    key: token
tlsConfig:
  serverName: gpuledger-ops.{{ .Release.Namespace }}.svc
  ca:
    secret:
      name: {{ .Values.ops.secretName }}
      key: ca.crt
{{- end }}
