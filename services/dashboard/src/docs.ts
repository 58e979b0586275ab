/** The page at `/docs`: the api's own description, to be read and tried; served whole from here. */
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js'
import 'swagger-ui-dist/swagger-ui.css'

SwaggerUI({
  url: './openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  // The validator is a service elsewhere.
  validatorUrl: null,
})
